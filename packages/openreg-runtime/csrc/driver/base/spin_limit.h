// SPDX-License-Identifier: BSD-3-Clause
// SpinLimit decides for how long a thread polls for what another thread does before it sleeps.
#pragma once

#include <cstdint>

#include "base/lock.h"

namespace openreg::driver {

// How long a thread that waits for another one polls before it sleeps: about as long as waking it takes, or not at all
// if polling was in vain several times in a row. It is in vain if the other thread takes longer, or if it cannot run
// because this one occupies the only core that is free. Then polling is tried again now and then. Guarded by the
// scheduler's mutex.
class SpinLimit {
 public:
  // Returns the nanoseconds for which the next wait polls; 0 means that it sleeps at once.
  uint64_t next() {
    if (in_vain_ < kPatience) {
      return kWakeNanoseconds;
    }
    skipped_ = (skipped_ + 1) % kSkips;
    return skipped_ == 0 ? kWakeNanoseconds : 0;
  }
  // Records whether what the thread waited for happened while it polled.
  void record(bool happened) { in_vain_ = happened ? 0 : in_vain_ + (in_vain_ < kPatience ? 1 : 0); }

 private:
  static constexpr int kPatience = 8;  // polls in vain, one after another, before polling is given up
  static constexpr int kSkips = 32;    // then one wait of so many polls
  int in_vain_ = 0;
  int skipped_ = 0;
};

}  // namespace openreg::driver
