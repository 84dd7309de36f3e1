// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "openreg.h"

namespace openreg::example {

// An observer of the device: counts the kernels that any thread enqueues, on every device, from its making until
// stop(). Any number of them may count at a time, and any thread may call them. stop() and the destructor wait for
// kernels, of which some need Python: not to be called while the GIL is held.
class LaunchCounter {
 public:
  // Throws c10::Error where the device refuses the subscription.
  LaunchCounter();
  ~LaunchCounter();
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  // Ends the counting, having waited until all that was counted is done. Does nothing the second time.
  void stop();

  uint64_t launched() const { return launched_; }
  // Of these, the ones that are done, failed ones included.
  uint64_t completed() const { return completed_; }

 private:
  std::atomic<orSubscription_t> subscription_{nullptr};
  std::atomic<uint64_t> launched_{0};
  std::atomic<uint64_t> completed_{0};
};

}  // namespace openreg::example
