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

// The handle tables of streams, events and graphs. Of the tasks in a stream it reads only whether any remain. Guarded
// by the scheduler's mutex.
class ObjectTable {
 public:
  explicit ObjectTable(const std::vector<std::unique_ptr<Device>>& devices) : devices_(devices) {}
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  // Return the object of a handle. Throw Error(orErrorInvalidResourceHandle) if the handle is invalid. A null stream
  // handle is the default stream of the calling thread's current device.
  Stream& stream(orStream_t handle);
  Event& event(orEvent_t handle);
  Graph& graph(orGraph_t handle);

  // Creates a stream. A priority outside of the range is clamped.
  Stream& create_stream(Device& device, int priority);
  // Destroys the handle of a stream. Remaining tasks still run. Then the command processor calls recycle(). Throws
  // Error(orErrorInvalidResourceHandle) for a default stream, Error(orErrorStreamCaptureUnsupported) if the stream is
  // capturing.
  void destroy_stream(Stream& stream);
  // Makes the object of a destroyed, empty stream available for reuse.
  void recycle(Stream& stream) { streams_.recycle(stream); }
  Event& create_event(bool timed);
  void destroy_event(Event& event);
  // Sets `skipped` in the events of a failing device whose tickets are not complete, because their tasks will be
  // skipped.
  void note_skipped_events(const Device& device);
  Graph& create_graph(std::shared_ptr<GraphBody> body);
  // Destroys the handle and returns the graph that it owned. The caller releases the mutex before it destroys the
  // graph.
  std::shared_ptr<GraphBody> destroy_graph(Graph& graph);

  // Returns all streams, destroyed ones included. They keep their addresses while streams are created.
  std::deque<Stream>& streams() { return streams_.objects(); }

 private:
  const std::vector<std::unique_ptr<Device>>& devices_;
  HandleTable<Stream> streams_;
  HandleTable<Event> events_;
  HandleTable<Graph> graphs_;
};

}  // namespace openreg::driver
