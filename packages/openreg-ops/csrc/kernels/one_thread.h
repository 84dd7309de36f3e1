// SPDX-License-Identifier: BSD-3-Clause
// A guard that makes kernels run on one thread: in a dry run (a call of a kernel for its checks alone,
// launch/dry_run.h), or so that writes and additions have a fixed order (launch/deterministic.h).
#pragma once

namespace openreg::ops::kernels {

// A guard that limits the OpenMP regions of the calling thread to one thread, whichever kernel it calls. Without OpenMP
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
  [[maybe_unused]] int before_;  // the number of threads to restore; unused without OpenMP
};

}  // namespace openreg::ops::kernels
