// SPDX-License-Identifier: BSD-3-Clause
// Defers the reuse of released blocks while streams other than their own still use them (record_stream()).
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

// The released blocks that other streams still use, and the fences of these uses. A fence is a marker in a stream that
// is signaled when all earlier tasks of the stream are complete. Not thread-safe.
class DeferredFrees {
 public:
  explicit DeferredFrees(MemoryProvider& provider) : provider_(provider) {}

  // Keeps a released block until the tasks that the streams in its `stream_uses` contain now are complete. During a
  // capture no fence is recorded, because an event on a capturing stream becomes a node and cannot be queried. The
  // fences of such a block are recorded when the capture has ended.
  void add(Block& block, bool is_capturing);

  // Returns true if this object keeps no block.
  bool is_empty() const { return queues_.empty() && deferred_until_capture_ends_.empty(); }
  // Calls `free` with each block whose fences are signaled. Unless `is_capturing`, first records the fences of blocks
  // that were released during a capture.
  void process(bool is_capturing, const std::function<void(Block&)>& free);

 private:
  // Records a fence for each stream in `stream_uses` of the block, and clears the list.
  void record_fences(Block& block);

  // The fences of one stream, each with the block that waits for it.
  struct FenceQueue {
    StreamKey stream;
    std::deque<std::pair<std::unique_ptr<StreamFence>, Block*>> fences;  // in the order in which they were recorded
  };

  MemoryProvider& provider_;
  std::list<FenceQueue> queues_;  // none is empty
  std::vector<Block*> deferred_until_capture_ends_;
};

}  // namespace openreg::runtime
