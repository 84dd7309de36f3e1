// SPDX-License-Identifier: BSD-3-Clause
// ObjectTable creates and destroys the streams, events and graphs of this process, and finds them by their handles.
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

// The handle tables of streams, events and graphs. Does not access the tasks of streams. Guarded by the scheduler's
// mutex.
class ObjectTable {
 public:
  explicit ObjectTable(const std::vector<std::unique_ptr<Device>>& devices) : devices_(devices) {}
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  // Return the object of a handle. Throw Error(orErrorInvalidResourceHandle) if the handle is invalid. A null stream
  // handle stands for the default stream of the calling thread's current device.
  Stream& stream(orStream_t handle);
  Event& event(orEvent_t handle);
  Graph& graph(orGraph_t handle);

  // Creates a stream. Clamps `priority` to the range from kGreatestPriority to kLeastPriority.
  Stream& create_stream(Device& device, int priority);
  // Destroys the handle of a stream. Tasks that remain in it are still executed; afterwards the CommandProcessor, which
  // removes complete tasks, calls recycle(). Throws Error(orErrorInvalidResourceHandle) for a default stream, and
  // Error(orErrorStreamCaptureUnsupported) if the stream is capturing.
  void destroy_stream(Stream& stream);
  // Makes the object of a destroyed stream, which must be empty, available for reuse.
  void recycle(Stream& stream) { streams_.recycle(stream); }
  // Creates an event, with timing if `timed` is true.
  Event& create_event(bool timed);
  void destroy_event(Event& event);
  // Sets `skipped` in each event of a failed device whose ticket (sequence number of a task in its stream) is not
  // complete, because its tasks will be skipped.
  void note_skipped_events(const Device& device);
  // Creates a graph handle, which shares ownership of `body`.
  Graph& create_graph(std::shared_ptr<GraphBody> body);
  // Destroys the handle and returns its share of the graph. The caller releases the mutex before it destroys that.
  std::shared_ptr<GraphBody> destroy_graph(Graph& graph);

  // Returns all streams, including destroyed ones. Streams keep their addresses when others are created.
  std::deque<Stream>& streams() { return streams_.objects(); }

 private:
  const std::vector<std::unique_ptr<Device>>& devices_;
  HandleTable<Stream> streams_;
  HandleTable<Event> events_;
  HandleTable<Graph> graphs_;
};

}  // namespace openreg::driver
