// SPDX-License-Identifier: BSD-3-Clause
// The lock under which the whole schedule stands, and how long it pays to spin instead of sleeping.
#pragma once

#include <cstdint>
#include <mutex>

namespace openreg::driver {

// Proof that the scheduler's mutex is held. It guards streams, events, graphs, semaphores, captures, engines and
// observers; a function that takes a `Lock&` which is not const gives the mutex up for a while.
using Lock = std::unique_lock<std::mutex>;

constexpr uint64_t kWakeNanoseconds = 20'000;  // what waking a thread that sleeps takes, about

// Locks a mutex that another thread holds: spins for about as long as being woken would take, and sleeps then.
void acquire_contended(Lock& lock);

inline void acquire(Lock& lock) {
  if (!lock.try_lock()) [[unlikely]] {
    acquire_contended(lock);
  }
}

inline Lock acquire(std::mutex& mutex) {
  Lock lock(mutex, std::defer_lock);
  acquire(lock);
  return lock;
}

}  // namespace openreg::driver
