// SPDX-License-Identifier: BSD-3-Clause
// The lock of the scheduler's mutex, which spins for a limited time before it sleeps.
#pragma once

#include <cstdint>
#include <mutex>

namespace openreg::driver {

// A proof that the caller holds the scheduler's mutex, which guards streams, events, graphs, semaphores, captures,
// engines and subscribers. A function that takes a non-const `Lock&` releases the mutex while it blocks.
using Lock = std::unique_lock<std::mutex>;

constexpr uint64_t kWakeNanoseconds = 20'000;  // approximate time to wake a sleeping thread

// Locks a mutex that another thread holds: spins for kWakeNanoseconds, then sleeps.
void acquire_contended(Lock& lock);

inline void acquire(Lock& lock) {
  if (!lock.try_lock()) [[unlikely]] {
    acquire_contended(lock);
  }
}

// Locks `mutex` and returns the lock.
inline Lock acquire(std::mutex& mutex) {
  Lock lock(mutex, std::defer_lock);
  acquire(lock);
  return lock;
}

}  // namespace openreg::driver
