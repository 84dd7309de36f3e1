// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: none; host and card share no lock, but a ring of commands in memory and a doorbell.
#include "base/lock.h"

#include "base/steady_time.h"
#include "platform/platform.h"

namespace openreg::driver {

// The mutex is held for less than a microsecond, and both sides ask for it with each launch: sleeping meanwhile would
// cost the one that sleeps, and the one that has to wake it, many times that.
void acquire_contended(Lock& lock) {
  const uint64_t deadline = now() + kWakeNanoseconds;
  while (now() < deadline) {
    platform::relax();
    if (lock.try_lock()) {
      return;
    }
  }
  lock.lock();
}

}  // namespace openreg::driver
