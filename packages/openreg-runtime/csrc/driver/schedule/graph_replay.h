// SPDX-License-Identifier: BSD-3-Clause
// Launches of graphs: a graph's nodes become entries of queues again.
#pragma once

#include <cstdint>
#include <memory>

#include "objects/graph.h"
#include "objects/stream.h"
#include "schedule/command_processor.h"

namespace openreg::driver {

// Guarded by the scheduler's mutex.
class GraphReplay {
 public:
  explicit GraphReplay(CommandProcessor& processor) : processor_(processor) {}

  // Throws Error(orErrorStreamCaptureUnsupported) while the stream is capturing, Error(orErrorInvalidValue) when it is
  // on another device than the one of the capture.
  static void check_launch(const GraphBody& body, const Stream& stream);
  // Enqueues all of it, after the launch before of the same graph.
  void enqueue(const std::shared_ptr<GraphBody>& body, Stream& stream);

 private:
  uint64_t enqueue_wait(Stream& waiting, Stream& waited, uint64_t ticket);

  CommandProcessor& processor_;
  uint64_t newest_launch_ = 0;
};

}  // namespace openreg::driver
