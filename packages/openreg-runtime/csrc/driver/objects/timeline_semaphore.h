// SPDX-License-Identifier: BSD-3-Clause
// A value that only grows, which streams wait for and somebody outside of the device raises.
//
// REAL HW: a word of memory that both sides map; the command processor looks at it until it is large enough.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

struct Stream;

// A stream at whose head a wait for `value` stands.
struct SemaphoreWaiter {
  Stream* stream;
  uint64_t value;
};

// Guarded by the scheduler's mutex.
struct TimelineSemaphore : HandleSlot {
  static constexpr uint32_t kHandleKind = 0;

  uint64_t signalled = 0;  // the newest value that was signalled
  uint64_t reached = 0;    // what streams have seen of it: less, at times, when a seed chooses the interleaving
  std::string failure;     // why no further value will be signalled; empty unless it has failed
  size_t waits = 0;        // entries of all queues that wait for it; they point here
  std::vector<SemaphoreWaiter> waiters;
};

inline orSemaphore_t handle_of(const TimelineSemaphore& semaphore) {
  return reinterpret_cast<orSemaphore_t>(HandleTable<TimelineSemaphore>::handle(semaphore));
}

}  // namespace openreg::driver
