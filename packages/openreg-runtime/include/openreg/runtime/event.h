// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Stream.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// What Event does on the driver's handle, for PyTorch's guard, which keeps handles of its own. Null was never recorded.
OPENREG_RUNTIME_API bool query_event(orEvent_t event);
// Releases the GIL while it waits.
OPENREG_RUNTIME_API void synchronize_event(orEvent_t event);
OPENREG_RUNTIME_API void block_stream(orEvent_t event, c10::Stream stream);
// Creates the event if it is null.
OPENREG_RUNTIME_API void record_event(orEvent_t& event, c10::Stream stream, bool timed);

// Owns an event of the driver; created on first record. Movable, not copyable; not thread-safe.
class OPENREG_RUNTIME_API Event {
 public:
  explicit Event(bool timed = false) noexcept : timed_(timed) {}
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  // Marks the work that the stream holds now.
  void record(c10::Stream stream);
  // Lets later work of the stream wait for the mark; no wait if nothing was recorded.
  void block(c10::Stream stream) const;
  // Whether the marked work is done; true if nothing was recorded.
  bool query() const;
  // The same two for allocators, which must not fail when memory is released. A failed device skips what its streams
  // hold, so there nothing is recorded, and a mark from before counts as not done until the device is reset.
  void record_for_release(c10::Stream stream) noexcept;
  bool query_for_release() const noexcept;
  // Waits for the mark. Releases the GIL meanwhile.
  void synchronize() const;

 private:
  bool timed_;
  c10::DeviceIndex device_ = -1;  // of the stream on which it was recorded last
  orEvent_t event_ = nullptr;
};

}  // namespace openreg::runtime
