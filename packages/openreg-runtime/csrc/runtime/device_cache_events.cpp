// SPDX-License-Identifier: BSD-3-Clause
// Blocks of one device's cache that streams other than their own still use when they are released.
#include "device_cache.h"

namespace openreg::runtime {

// Marks what the streams named for a released block hold now; the block becomes free when all marks are reached.
void DeviceCache::record_other_uses(Block& block) {
  if (is_capturing()) {
    // A mark made in a capture is part of the graph: it can never be asked for. After the capture the block is free for
    // its own pool, where the order of the recorded work protects it.
    kept_back_.push_back(&block);
    ++block.pending_events;
    return;
  }
  for (const c10::Stream& stream : block.other_uses) {
    Event event;
    event.record_for_release(stream);
    events_[stream].emplace_back(std::move(event), &block);
    ++block.pending_events;
  }
  block.other_uses.clear();
}

void DeviceCache::process_events() {
  if (!kept_back_.empty() && !is_capturing()) {
    for (Block* block : std::exchange(kept_back_, {})) {
      --block->pending_events;
      record_other_uses(*block);
    }
  }
  for (auto& [stream, queue] : events_) {
    while (!queue.empty() && queue.front().first.query_for_release()) {
      Block& block = *queue.front().second;
      queue.pop_front();
      if (--block.pending_events == 0) {
        free_block(block, block.context);
      }
    }
  }
}

}  // namespace openreg::runtime
