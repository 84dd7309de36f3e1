// SPDX-License-Identifier: BSD-3-Clause
// A mark in a stream.
#pragma once

#include <cstdint>
#include <memory>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

struct CapturedEvent;
struct Device;
struct Stream;

// Guarded by the scheduler's mutex. An event is a (stream, ticket) pair; recording one without timing enqueues nothing.
struct Event : HandleSlot {
  static constexpr uint32_t kHandleKind = 2;

  bool timed = false;
  Stream* stream = nullptr;  // null until recorded
  Device* device = nullptr;  // of the stream when it was recorded
  uint64_t ticket = 0;
  uint64_t record = 0;       // counts records, so that a superseded timestamp is not stored
  uint64_t nanoseconds = 0;  // of the scheduler's clock, when the mark was passed
  bool skipped = false;      // the device failed before the mark was passed, so work before it was skipped
  // Set instead of stream and ticket when a capturing stream recorded the event.
  std::shared_ptr<const CapturedEvent> captured;
};

inline orEvent_t handle_of(const Event& event) {
  return reinterpret_cast<orEvent_t>(HandleTable<Event>::handle(event));
}

}  // namespace openreg::driver
