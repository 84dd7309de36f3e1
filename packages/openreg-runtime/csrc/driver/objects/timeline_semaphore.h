// SPDX-License-Identifier: BSD-3-Clause
// TimelineSemaphore is a 64-bit counter that only grows, as in Vulkan. Streams wait for a value, and the host signals
// one.
//
// REAL HW: a semaphore is a word of memory that host and device map. The command processor polls the word until it is
// large enough.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

struct Stream;

// A stream whose head (oldest task) waits until a counter has reached `value`. The counter is a semaphore, or the
// ticket of another stream's newest complete task.
struct Waiter {
  Stream* stream;
  uint64_t value;
};

// The object behind a semaphore handle. Guarded by the scheduler's mutex.
struct TimelineSemaphore : HandleSlot {
  static constexpr uint32_t kHandleKind = 0;

  uint64_t signaled = 0;  // the newest value that the host has signaled
  // The value that streams see. It is below `signaled` while a seeded schedule (OPENREG_SCHEDULE_SEED) delays a signal.
  uint64_t reached = 0;
  std::string failure;          // the reason of orSemaphoreFail(); empty unless the semaphore has failed
  size_t waits = 0;             // number of enqueued tasks that point to it, so that it must not be destroyed
  std::vector<Waiter> waiters;  // the streams whose heads wait for it
};

inline orSemaphore_t handle_of(const TimelineSemaphore& semaphore) {
  return reinterpret_cast<orSemaphore_t>(HandleTable<TimelineSemaphore>::handle(semaphore));
}

}  // namespace openreg::driver
