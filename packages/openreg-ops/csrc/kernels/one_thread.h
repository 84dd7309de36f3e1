// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg::ops::kernels {

// While it lives, the calling thread of the engine spreads nothing over others, whatever kernel it runs. Without OpenMP
// it does nothing.
class SingleThreadGuard {
 public:
  SingleThreadGuard();
  ~SingleThreadGuard();
  SingleThreadGuard(const SingleThreadGuard&) = delete;
  SingleThreadGuard& operator=(const SingleThreadGuard&) = delete;
  SingleThreadGuard(SingleThreadGuard&&) = delete;
  SingleThreadGuard& operator=(SingleThreadGuard&&) = delete;

 private:
  [[maybe_unused]] int before_;  // without OpenMP
};

}  // namespace openreg::ops::kernels
