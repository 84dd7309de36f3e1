// SPDX-License-Identifier: BSD-3-Clause
// Blocks that streams other than their own still use when they are released.
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

// Not thread-safe.
class DeferredFrees {
 public:
  explicit DeferredFrees(MemoryProvider& provider) : provider_(provider) {}

  // Keeps a released block until what the streams named for it hold now is done. While a capture is under way nothing
  // can be marked: a mark made in it is part of the graph and can never be asked for. Then the block is kept for later.
  void add(Block& block, bool is_capturing);

  // Whether process() has anything to look at.
  bool is_empty() const { return queues_.empty() && deferred_until_capture_ends_.empty(); }
  // Calls `free` with each block whose uses are over.
  void process(bool is_capturing, const std::function<void(Block&)>& free);

 private:
  void mark_uses(Block& block);

  struct Queue {
    StreamKey stream;
    std::deque<std::pair<std::unique_ptr<StreamFence>, Block*>> marks;  // in the order in which they were made
  };

  MemoryProvider& provider_;
  std::list<Queue> queues_;  // with marks only
  std::vector<Block*> deferred_until_capture_ends_;
};

}  // namespace openreg::runtime
