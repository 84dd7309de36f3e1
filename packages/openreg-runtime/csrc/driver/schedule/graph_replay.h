// SPDX-License-Identifier: BSD-3-Clause
// GraphReplay launches graphs: it enqueues the nodes that a capture has recorded, as tasks on the streams of their
// branches. A branch consists of the nodes that one stream has recorded.
#pragma once

#include <cstdint>
#include <memory>

#include "objects/graph.h"
#include "objects/stream.h"
#include "schedule/command_processor.h"

namespace openreg::driver {

// The part of the scheduler that launches graphs. Guarded by the scheduler's mutex.
class GraphReplay {
 public:
  explicit GraphReplay(CommandProcessor& processor) : processor_(processor) {}

  // Throws Error(orErrorStreamCaptureUnsupported) if the stream is capturing, and Error(orErrorInvalidValue) if it does
  // not belong to the device of the capture.
  static void check_launch(const GraphBody& body, const Stream& stream);
  // Enqueues all nodes of the graph: branch 0 on `stream`, the others on streams of the graph. They are executed after
  // the earlier tasks of `stream` and after the previous launch of the graph. Then enqueues an extra task on `stream`,
  // which shares ownership of `body` until all nodes are complete. Returns the ticket (sequence number in its stream)
  // of the extra task.
  uint64_t enqueue(const std::shared_ptr<GraphBody>& body, Stream& stream);

 private:
  uint64_t enqueue_wait(Stream& waiting, Stream& waited, uint64_t ticket);

  CommandProcessor& processor_;
  uint64_t newest_launch_ = 0;  // number of the newest launch, of all graphs
};

}  // namespace openreg::driver
