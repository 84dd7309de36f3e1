// SPDX-License-Identifier: BSD-3-Clause
// The scheduler's tables of streams and events.
#include <algorithm>

#include "error.h"
#include "scheduler.h"

namespace openreg::driver {

Stream& Scheduler::stream(orStream_t handle, const Lock& /*lock*/) {
  if (handle == nullptr) {
    return *devices_[static_cast<size_t>(current_device())]->default_stream;
  }
  Stream* stream = streams_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(stream != nullptr, orErrorInvalidResourceHandle, "stream ", handle,
                       " does not exist or was destroyed; use a handle from orStreamCreate()");
  return *stream;
}

Event& Scheduler::event(orEvent_t handle, const Lock& /*lock*/) {
  Event* event = events_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(event != nullptr, orErrorInvalidResourceHandle, "event ", handle,
                       " does not exist or was destroyed; use a handle from orEventCreate()");
  return *event;
}

orStream_t Scheduler::handle(const Stream& stream) {
  return reinterpret_cast<orStream_t>(HandleTable<Stream>::handle(stream));
}

orEvent_t Scheduler::handle(const Event& event) {
  return reinterpret_cast<orEvent_t>(HandleTable<Event>::handle(event));
}

Stream& Scheduler::create_stream(Device& device, int priority, const Lock& /*lock*/) {
  Stream& stream = streams_.create();
  stream.device = &device;
  stream.priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  return stream;
}

void Scheduler::destroy_stream(Stream& stream, const Lock& /*lock*/) {
  OPENREG_DRIVER_CHECK(&stream != stream.device->default_stream, orErrorInvalidResourceHandle,
                       "the default stream of device ", stream.device->index,
                       " cannot be destroyed; it lives as long as the process");
  HandleTable<Stream>::invalidate(stream);
  if (!stream.busy) {
    streams_.recycle(stream);  // otherwise advance() does, when the last entry is done
  }
}

Event& Scheduler::create_event(bool timed, const Lock& /*lock*/) {
  Event& event = events_.create();
  event.timed = timed;
  return event;
}

void Scheduler::destroy_event(Event& event, const Lock& /*lock*/) {
  HandleTable<Event>::invalidate(event);
  event.stream = nullptr;
  ++event.record;  // a timestamp still queued must not reach the event that reuses this object
  events_.recycle(event);
}

}  // namespace openreg::driver
