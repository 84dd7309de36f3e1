// SPDX-License-Identifier: BSD-3-Clause
// SpinLimit polls for what another thread does, before the calling thread sleeps, as long as that has a purpose.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/lock.h"
#include "base/steady_time.h"
#include "platform/platform.h"

namespace openreg::driver {

// How long a thread that waits for another one polls before it sleeps: about as long as waking it takes, or not at all
// if polling was in vain several times in a row. It is in vain if the other thread takes longer, or if it cannot run
// because this one occupies the only core that is free. Then polling is tried again now and then. Guarded by the
// scheduler's mutex.
class SpinLimit {
 public:
  // Polls until `has_happened()` returns true or the limit is reached. Releases the mutex while it polls, so
  // `has_happened` reads only atomics.
  template <class Condition>
  void poll(Lock& lock, Condition has_happened) {
    if (in_vain_ == kPatience) {
      skipped_ = (skipped_ + 1) % kSkips;
      if (skipped_ != 0) {
        return;
      }
    }
    lock.unlock();
    const uint64_t deadline = now() + kWakeNanoseconds;
    while (!has_happened() && now() < deadline) {
      platform::relax();
    }
    acquire(lock);
    in_vain_ = has_happened() ? 0 : std::min(in_vain_ + 1, kPatience);
  }

 private:
  static constexpr int kPatience = 8;  // polls in vain, one after another, before polling is given up
  static constexpr int kSkips = 32;    // then one wait of so many polls
  int in_vain_ = 0;
  int skipped_ = 0;
};

}  // namespace openreg::driver
