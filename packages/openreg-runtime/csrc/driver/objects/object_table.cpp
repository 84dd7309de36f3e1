// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: a stream is a ring of commands in memory, which the device reads through a channel. Events and graphs exist
// only in the driver.
#include "objects/object_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace openreg::driver {

Stream& ObjectTable::stream(orStream_t handle) {
  if (handle == nullptr) {
    return *devices_[static_cast<size_t>(current_device())]->default_stream;
  }
  Stream* stream = streams_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(stream != nullptr, orErrorInvalidResourceHandle, "stream ", handle,
                       " does not exist or was destroyed; use a handle from orStreamCreate()");
  return *stream;
}

Event& ObjectTable::event(orEvent_t handle) {
  Event* event = events_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(event != nullptr, orErrorInvalidResourceHandle, "event ", handle,
                       " does not exist or was destroyed; use a handle from orEventCreate()");
  return *event;
}

Graph& ObjectTable::graph(orGraph_t handle) {
  Graph* graph = graphs_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(graph != nullptr, orErrorInvalidResourceHandle, "graph ", handle,
                       " does not exist or was destroyed; use a handle from orStreamEndCapture()");
  return *graph;
}

Stream& ObjectTable::create_stream(Device& device, int priority) {
  Stream& stream = streams_.create();
  stream.device = &device;
  stream.counters = {};
  stream.first_ticket = stream.submitted;
  stream.priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  return stream;
}

void ObjectTable::destroy_stream(Stream& stream) {
  OPENREG_DRIVER_CHECK(&stream != stream.device->default_stream, orErrorInvalidResourceHandle,
                       "the default stream of device ", stream.device->index,
                       " lives as long as the process and cannot be destroyed; pass a stream from orStreamCreate()");
  OPENREG_DRIVER_CHECK(stream.capture == nullptr, orErrorStreamCaptureUnsupported,
                       "the stream is capturing; end the capture with orStreamEndCapture() first");
  HandleTable<Stream>::invalidate(stream);
  if (!stream.busy) {
    streams_.recycle(stream);  // otherwise the command processor recycles it after its last task
  }
}

Event& ObjectTable::create_event(bool timed) {
  Event& event = events_.create();
  event.timed = timed;
  event.skipped = false;
  return event;
}

void ObjectTable::destroy_event(Event& event) {
  HandleTable<Event>::invalidate(event);
  event.stream = nullptr;
  event.captured = nullptr;
  ++event.record;  // keeps a queued timestamp from being stored in an event that reuses this object
  events_.recycle(event);
}

void ObjectTable::note_skipped_events(const Device& device) {
  for (Event& event : events_.objects()) {
    if (event.stream != nullptr && event.device == &device && event.stream->completed < event.ticket) {
      event.skipped = true;
    }
  }
}

Graph& ObjectTable::create_graph(std::shared_ptr<GraphBody> body) {
  Graph& graph = graphs_.create();
  graph.body = std::move(body);
  return graph;
}

std::shared_ptr<GraphBody> ObjectTable::destroy_graph(Graph& graph) {
  HandleTable<Graph>::invalidate(graph);
  graphs_.recycle(graph);
  return std::move(graph.body);
}

}  // namespace openreg::driver
