// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the command processor of the device has a timer, or signals a semaphore at a given time.
#include "time/timer_queue.h"

#include <algorithm>
#include <chrono>
#include "base/steady_time.h"

namespace openreg::driver {

namespace {

// In nanoseconds. The longest single wait, because a standard library overflows on waits of centuries.
constexpr uint64_t kLongestNap = 3'600'000'000'000;

}  // namespace

void TimerQueue::wait_until(uint64_t time, Lock& lock) {
  const uint64_t present = now();
  if (present < time) {
    changed_.wait_for(lock, std::chrono::nanoseconds(std::min(time - present, kLongestNap)));
  }
}

}  // namespace openreg::driver
