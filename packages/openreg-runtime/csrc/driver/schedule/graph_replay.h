// SPDX-License-Identifier: BSD-3-Clause
// The launch of graphs, which enqueues their nodes as tasks.
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

  // Throws Error(orErrorStreamCaptureUnsupported) while the stream is capturing, and Error(orErrorInvalidValue) if it
  // is on another device than the capture was.
  static void check_launch(const GraphBody& body, const Stream& stream);
  // Enqueues all nodes, to run after the previous launch of this graph. Shares ownership of `body` until they are
  // complete.
  void enqueue(const std::shared_ptr<GraphBody>& body, Stream& stream);

 private:
  uint64_t enqueue_wait(Stream& waiting, Stream& waited, uint64_t ticket);

  CommandProcessor& processor_;
  uint64_t newest_launch_ = 0;
};

}  // namespace openreg::driver
