// SPDX-License-Identifier: BSD-3-Clause
// Events of the driver. An event is a marker in a stream for which the host or another stream can wait. This header has
// functions on the driver's handles, and a class that owns a handle.
#pragma once

#include <c10/core/Stream.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// PyTorch's device guard calls the functions below, because it stores handles itself. A null handle is an event that
// was never recorded. The tasks of an event are those that its stream contained when the event was last recorded. All
// functions throw the device's sticky error, a c10::AcceleratorError. Thread-safe.

// Returns true if the tasks of the event are complete, or if it was never recorded.
OPENREG_RUNTIME_API bool query_event(orEvent_t event);
// Blocks until the tasks of the event are complete; returns at once if it was never recorded. Releases the GIL while it
// blocks.
OPENREG_RUNTIME_API void synchronize_event(orEvent_t event);
// Enqueues a wait: later tasks of `stream` start after the tasks of the event are complete. Does nothing if the event
// was never recorded. Blocks while the queue of `stream` is full, and releases the GIL while it blocks.
OPENREG_RUNTIME_API void block_stream(orEvent_t event, c10::Stream stream);
// Records the event on the stream. If `event` is null, first creates an event, with timing if `timed` is true, which
// the caller owns. Recording an event with timing enqueues a task, so it blocks while the stream's queue is full, and
// releases the GIL while it blocks.
OPENREG_RUNTIME_API void record_event(orEvent_t& event, c10::Stream stream, bool timed);

// An owner of an event of the driver, which the first call of record() creates. Not thread-safe.
class OPENREG_RUNTIME_API Event {
 public:
  explicit Event(bool timed = false) noexcept : timed_(timed) {}
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  // Calls record_event().
  void record(c10::Stream stream);
  // Calls block_stream().
  void block(c10::Stream stream) const;
  // Calls query_event().
  bool query() const;
  // Same as `record()`, except that it ignores errors, such as that of a failed device. Allocators call this, because
  // they must not throw when memory is released.
  void record_for_release(c10::Stream stream) noexcept;
  // Same as `query()`, except that it throws no error. If the device has failed, before or after the event was
  // recorded, returns false until it is reset, because one of its tasks may still run, and true from then on.
  bool query_for_release() const noexcept;
  // Calls synchronize_event().
  void synchronize() const;

 private:
  bool timed_;
  c10::DeviceIndex device_ = -1;  // device of the stream on which the event was last recorded
  orEvent_t event_ = nullptr;
};

}  // namespace openreg::runtime
