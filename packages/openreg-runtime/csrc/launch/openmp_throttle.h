// SPDX-License-Identifier: BSD-3-Clause
// OpenMpThrottle lets waiting OpenMP threads sleep instead of spin on a machine that is busy. The number of threads
// stays the same, so that results do, too.
//
// On an idle machine spinning is right: waking a thread takes four times as long as a small kernel. On a busy one, a
// thread that spins uses the time slice of the thread for which it waits. Then a kernel of 0.1 ms takes 10 ms.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/openmp.h"

namespace openreg::runtime {

// The throttle of one thread, which executes kernels.
class OpenMpThrottle {
 public:
  // Must be called before each kernel. Measures now and then how long the thread waits for a core.
  void before_kernel() {
    if (++kernels_ % kKernelsPerCheck == 0) {
      check();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr uint64_t kKernelsPerCheck = 16;  // because even reading the clock takes a part of a launch
  static constexpr std::chrono::milliseconds kInterval{50};
  static constexpr int kPatience = 2;  // results in a row, because one may be of a moment such as the program's start
  static constexpr std::chrono::milliseconds kShortestSleep{400};
  static constexpr std::chrono::milliseconds kLongestSleep{3200};

  enum class Cores : uint8_t { kFree, kBusy, kUnknown };

  void check();
  // Returns whether the thread had to wait for cores since the last result, or kUnknown if it had too little to do.
  Cores measure();

  uint64_t kernels_ = 0;
  Clock::time_point next_;  // of the next change or measurement
  CoreTime last_;
  int busy_ = 0;                                      // results in a row by which the cores are busy
  std::unique_ptr<IdleOpenMpTeam> idle_team_;         // null while threads spin
  std::chrono::milliseconds sleep_ = kShortestSleep;  // how long threads sleep before they are tried spinning again
};

}  // namespace openreg::runtime
