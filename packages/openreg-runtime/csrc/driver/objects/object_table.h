// SPDX-License-Identifier: BSD-3-Clause
// The streams, events and graphs of this process, behind their handles.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/handle_table.h"
#include "objects/device.h"
#include "objects/event.h"
#include "objects/graph.h"
#include "objects/stream.h"
#include "openreg.h"

namespace openreg::driver {

// Makes, finds and destroys; knows nothing of the work in a stream but whether some is left. Guarded by the scheduler's
// mutex.
class ObjectTable {
 public:
  explicit ObjectTable(const std::vector<std::unique_ptr<Device>>& devices) : devices_(devices) {}
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  // The object behind a handle; throws Error(orErrorInvalidResourceHandle). A null stream is the default stream of the
  // calling thread's current device.
  Stream& stream(orStream_t handle);
  Event& event(orEvent_t handle);
  Graph& graph(orGraph_t handle);

  // Priorities beyond the range are brought into it.
  Stream& create_stream(Device& device, int priority);
  // Throws Error(orErrorInvalidResourceHandle) for a default stream, Error(orErrorStreamCaptureUnsupported) while the
  // stream is capturing. What it still holds is done; then recycle() makes the object free.
  void destroy_stream(Stream& stream);
  void recycle(Stream& stream) { streams_.recycle(stream); }
  Event& create_event(bool timed);
  void destroy_event(Event& event);
  // Of a device that fails: notes which events mark work that is not done, since it is going to be skipped.
  void note_skipped_events(const Device& device);
  Graph& create_graph(std::shared_ptr<GraphBody> body);
  // Gives what the handle owned; the caller drops it after the lock.
  std::shared_ptr<GraphBody> destroy_graph(Graph& graph);

  // All of them, destroyed ones too. They keep their addresses while others are made.
  std::deque<Stream>& streams() { return streams_.objects(); }

 private:
  const std::vector<std::unique_ptr<Device>>& devices_;
  HandleTable<Stream> streams_;
  HandleTable<Event> events_;
  HandleTable<Graph> graphs_;
};

}  // namespace openreg::driver
