// SPDX-License-Identifier: BSD-3-Clause
// A marker in a stream, for which the host or other streams can wait.
#pragma once

#include <cstdint>
#include <memory>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

struct CapturedEvent;
struct Device;
struct Stream;

// A (stream, ticket) pair. Recording one without timing enqueues no task. Guarded by the scheduler's mutex.
struct Event : HandleSlot {
  static constexpr uint32_t kHandleKind = 2;

  bool timed = false;
  Stream* stream = nullptr;  // null until recorded
  Device* device = nullptr;  // of the stream when it was recorded
  uint64_t ticket = 0;
  uint64_t record = 0;       // counts records, so that a superseded timestamp is not stored
  uint64_t nanoseconds = 0;  // of the scheduler's clock, when the timestamp task completed
  bool skipped = false;      // true if the device failed before the ticket completed, so earlier tasks were skipped
  // The place in a capture, set instead of stream and ticket if a capturing stream recorded the event. May be null.
  std::shared_ptr<const CapturedEvent> captured;
};

inline orEvent_t handle_of(const Event& event) {
  return reinterpret_cast<orEvent_t>(HandleTable<Event>::handle(event));
}

}  // namespace openreg::driver
