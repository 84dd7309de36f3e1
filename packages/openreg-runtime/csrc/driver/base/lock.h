// SPDX-License-Identifier: BSD-3-Clause
// Lock holds the scheduler's mutex, which guards the changing state of all devices. acquire() spins for a limited time
// before it sleeps, because the mutex is usually held for less than a microsecond.
#pragma once

#include <cstdint>
#include <mutex>

namespace openreg::driver {

// A lock of the scheduler's mutex, which guards streams, events, graphs, semaphores, captures, engines and subscribers.
// As a parameter it proves that the caller holds the mutex. A function with a non-const `Lock&` releases the mutex
// while it blocks.
using Lock = std::unique_lock<std::mutex>;

constexpr uint64_t kWakeNanoseconds = 20'000;  // approximate time to wake a sleeping thread

// Locks the mutex of `lock`, which another thread holds: spins for kWakeNanoseconds, then sleeps.
void acquire_contended(Lock& lock);

// Locks the mutex of `lock`, which must not hold the mutex yet.
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
