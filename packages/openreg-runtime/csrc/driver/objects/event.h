// SPDX-License-Identifier: BSD-3-Clause
// Event is a marker in a stream, for which the host and other streams can wait. An event with timing also stores a
// time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

struct CapturedEvent;
struct Device;
struct Stream;

// A pair of stream and ticket (the sequence number of a task in its stream): the event is complete when the stream has
// completed that ticket. Recording an event without timing stores the ticket of the newest task and enqueues nothing.
// Recording one with timing enqueues a task that stores the time. Guarded by the scheduler's mutex.
struct Event : HandleSlot {
  static constexpr uint32_t kHandleKind = 2;

  bool timed = false;        // true for an event with timing
  Stream* stream = nullptr;  // null until recorded, and if it was recorded in a capture
  Device* device = nullptr;  // the device of `stream` when the event was recorded
  uint64_t ticket = 0;
  uint64_t record = 0;       // incremented by each record, so that the task of an earlier record stores no time
  uint64_t nanoseconds = 0;  // the time by the scheduler's Clock, if timed
  bool skipped = false;      // true if the device failed before the ticket was complete, so that tasks were skipped
  // The place in a capture, if a capturing stream recorded the event. Null otherwise.
  std::shared_ptr<const CapturedEvent> captured;
};

inline orEvent_t handle_of(const Event& event) {
  return reinterpret_cast<orEvent_t>(HandleTable<Event>::handle(event));
}

}  // namespace openreg::driver
