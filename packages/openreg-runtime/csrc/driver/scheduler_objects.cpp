// SPDX-License-Identifier: BSD-3-Clause
// The scheduler's tables of streams, events and graphs, and what it tells about them.
#include <algorithm>
#include <cstring>
#include <utility>

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

Graph& Scheduler::graph(orGraph_t handle, const Lock& /*lock*/) {
  Graph* graph = graphs_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(graph != nullptr, orErrorInvalidResourceHandle, "graph ", handle,
                       " does not exist or was destroyed; use a handle from orStreamEndCapture()");
  return *graph;
}

orStream_t Scheduler::handle(const Stream& stream) {
  return reinterpret_cast<orStream_t>(HandleTable<Stream>::handle(stream));
}

orEvent_t Scheduler::handle(const Event& event) {
  return reinterpret_cast<orEvent_t>(HandleTable<Event>::handle(event));
}

orGraph_t Scheduler::handle(const Graph& graph) {
  return reinterpret_cast<orGraph_t>(HandleTable<Graph>::handle(graph));
}

Stream& Scheduler::create_stream(Device& device, int priority, const Lock& /*lock*/) {
  Stream& stream = streams_.create();
  stream.device = &device;
  stream.counters = {};
  stream.first_ticket = stream.submitted;
  stream.priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  return stream;
}

void Scheduler::destroy_stream(Stream& stream, const Lock& /*lock*/) {
  OPENREG_DRIVER_CHECK(&stream != stream.device->default_stream, orErrorInvalidResourceHandle,
                       "the default stream of device ", stream.device->index,
                       " cannot be destroyed; it lives as long as the process");
  OPENREG_DRIVER_CHECK(stream.capture == nullptr, orErrorStreamCaptureUnsupported,
                       "the stream is capturing; end the capture with orStreamEndCapture() first");
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
  event.captured = nullptr;
  ++event.record;  // a timestamp still queued must not reach the event that reuses this object
  events_.recycle(event);
}

Graph& Scheduler::create_graph(std::shared_ptr<GraphBody> body, const Lock& /*lock*/) {
  Graph& graph = graphs_.create();
  graph.body = std::move(body);
  return graph;
}

std::shared_ptr<GraphBody> Scheduler::destroy_graph(Graph& graph, const Lock& /*lock*/) {
  HandleTable<Graph>::invalidate(graph);
  graphs_.recycle(graph);
  return std::move(graph.body);
}

Counters Scheduler::counters(const Device& device, const Lock& /*lock*/) const {
  Counters result = device.counters;
  for (const Engine& engine : engines_) {
    if (engine.running_device == &device) {
      result.busy_nanoseconds += now() - engine.running_since;
    }
  }
  return result;
}

Counters Scheduler::counters(const Stream& stream, const Lock& /*lock*/) const {
  Counters result = stream.counters;
  for (const Engine& engine : engines_) {
    if (engine.running == &stream) {
      result.busy_nanoseconds += now() - engine.running_since;
    }
  }
  return result;
}

int Scheduler::utilization(const Device& device, const Lock& /*lock*/) const {
  BusyMeter busy = device.busy;
  const uint64_t time = now();
  for (const Engine& engine : engines_) {
    if (engine.running_device == &device) {
      busy.add(engine.running_since, time);
    }
  }
  return static_cast<int>(busy.busy(time) * 100 / BusyMeter::kWindow);
}

void Scheduler::engine_stats(EngineIndex index, orEngineStats& stats, const Lock& /*lock*/) const {
  const Engine& engine = engines_[index];
  stats = {};
  std::strncpy(stats.name, index == kCompute ? "compute" : "copy", sizeof(stats.name) - 1);
  stats.tasks = engine.tasks;
  stats.busy_nanoseconds = engine.busy_nanoseconds;
  if (engine.running != nullptr) {
    stats.busy_nanoseconds += now() - engine.running_since;
  }
}

}  // namespace openreg::driver
