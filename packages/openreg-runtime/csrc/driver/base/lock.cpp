// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no counterpart, because host and device share no mutex. They share a ring of commands in memory, and the
// host writes to a doorbell register.
#include "base/lock.h"

#include "base/steady_time.h"
#include "platform/platform.h"

namespace openreg::driver {

// Host and engine threads lock the mutex with each launch and hold it for less than a microsecond. Sleeping would cost
// many times that, both for the thread that sleeps and for the one that wakes it.
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
