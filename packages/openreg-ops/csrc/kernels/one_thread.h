// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg::ops::kernels {

// While it lives, the calling thread of the engine spreads nothing over others, whatever kernel it runs. Without OpenMP
// it does nothing.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  OneThread(OneThread&&) = delete;
  OneThread& operator=(OneThread&&) = delete;

 private:
  [[maybe_unused]] int before_;  // without OpenMP
};

}  // namespace openreg::ops::kernels
