// SPDX-License-Identifier: BSD-3-Clause
#include "cache/deferred_frees.h"

#include <algorithm>

namespace openreg::runtime {

void DeferredFrees::add(Block& block, bool is_capturing) {
  if (is_capturing) {
    // After the capture the block returns to its own pool, where the order of the captured tasks protects its content.
    deferred_until_capture_ends_.push_back(&block);
    ++block.pending_fences;
  } else {
    record_fences(block);
  }
}

void DeferredFrees::record_fences(Block& block) {
  for (const StreamKey& stream : block.stream_uses) {
    auto queue =
        std::find_if(queues_.begin(), queues_.end(), [&](const FenceQueue& item) { return item.stream == stream; });
    if (queue == queues_.end()) {
      queue = queues_.insert(queue, FenceQueue{stream, {}});
    }
    queue->fences.emplace_back(provider_.record_fence(stream), &block);
    ++block.pending_fences;
  }
  block.stream_uses.clear();
}

void DeferredFrees::process(bool is_capturing, const std::function<void(Block&)>& free) {
  if (!is_capturing) {
    for (Block* block : std::exchange(deferred_until_capture_ends_, {})) {
      --block->pending_fences;
      record_fences(*block);
    }
  }
  for (FenceQueue& queue : queues_) {
    while (!queue.fences.empty() && queue.fences.front().first->is_signaled()) {
      Block& block = *queue.fences.front().second;
      queue.fences.pop_front();
      if (--block.pending_fences == 0) {
        free(block);
      }
    }
  }
  std::erase_if(queues_, [](const FenceQueue& queue) { return queue.fences.empty(); });
}

}  // namespace openreg::runtime
