// SPDX-License-Identifier: BSD-3-Clause
// Defers the release of blocks that streams other than their own still use.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "cache/block.h"
#include "cache/memory_provider.h"

namespace openreg::runtime {

// Released blocks with uses of other streams, and the fences of these uses. Not thread-safe.
class DeferredFrees {
 public:
  explicit DeferredFrees(MemoryProvider& provider) : provider_(provider) {}

  // Defers a released block until the tasks that the streams in `stream_uses` contain now are complete. During a
  // capture no fence is recorded, because an event on a capturing stream becomes a node and cannot be queried. The
  // block then stays in a list until the capture ends.
  void add(Block& block, bool is_capturing);

  // Returns true if no block is deferred.
  bool is_empty() const { return queues_.empty() && deferred_until_capture_ends_.empty(); }
  // Calls `free` with each block whose fences are signaled. Unless `is_capturing`, first records the fences of blocks
  // that a capture deferred.
  void process(bool is_capturing, const std::function<void(Block&)>& free);

 private:
  void mark_uses(Block& block);

  struct Queue {
    StreamKey stream;
    std::deque<std::pair<std::unique_ptr<StreamFence>, Block*>> fences;  // in the order in which they were recorded
  };

  MemoryProvider& provider_;
  std::list<Queue> queues_;  // none is empty
  std::vector<Block*> deferred_until_capture_ends_;
};

}  // namespace openreg::runtime
