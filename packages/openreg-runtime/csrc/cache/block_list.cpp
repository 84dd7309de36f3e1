// SPDX-License-Identifier: BSD-3-Clause
#include "cache/block_list.h"

#include <utility>

#include "cache/pools.h"

namespace openreg::runtime {

Block* BlockList::make() {
  if (spare_ == nullptr) {
    return &all_.emplace_back();
  }
  Block* block = spare_;
  spare_ = block->next;
  return block;
}

// Resets nothing, because a free block is not allocated and has no uses already.
void BlockList::drop(Block& block) {
  block.next = spare_;
  spare_ = &block;
}

void BlockList::add_segment(Segment& segment, int64_t stream) {
  Block* block = make();
  block->address = segment.address;
  block->size = segment.size;
  block->stream = stream;
  block->segment = &segment;
  block->previous = nullptr;
  block->next = nullptr;
  block->freed_at = segment.pool->searches;
  segment.first = block;
  segment.pool->free.insert(*block);
}

void BlockList::remove_segment(Segment& segment) {
  segment.pool->free.erase(*segment.first);
  drop(*segment.first);
  segment.first = nullptr;
}

Block& BlockList::split_block(Block& free, size_t size, bool split) {
  BlockPool& pool = *free.segment->pool;
  const bool was_split = !free.is_whole_segment();
  if (!split) {
    pool.free.erase(free);
    if (was_split) {
      reporter_.statistics.inactive_split_changed(pool, -1, -static_cast<ptrdiff_t>(free.size));
    }
    return free;
  }
  // The rest keeps the object `free`, because often its place among the free blocks does not change.
  Block& block = *make();
  block.address = free.address;
  block.size = size;
  block.stream = free.stream;
  block.segment = free.segment;
  block.previous = free.previous;
  block.next = &free;
  (free.previous == nullptr ? free.segment->first : free.previous->next) = &block;
  free.previous = &block;
  pool.free.resize(free, free.address + size, free.size - size);
  if (was_split) {
    reporter_.statistics.inactive_split_changed(pool, 0, -static_cast<ptrdiff_t>(size));
  } else {
    reporter_.statistics.inactive_split_changed(pool, 1, static_cast<ptrdiff_t>(free.size));
  }
  return block;
}

void BlockList::unlink(Block& block) {
  (block.previous == nullptr ? block.segment->first : block.previous->next) = block.next;
  if (block.next != nullptr) {
    block.next->previous = block.previous;
  }
  drop(block);
}

void BlockList::merge_block(Block& block) {
  BlockPool& pool = *block.segment->pool;
  Block* const low = block.previous != nullptr && block.previous->is_free() ? block.previous : nullptr;
  Block* const high = block.next != nullptr && block.next->is_free() ? block.next : nullptr;
  const int joined = (low != nullptr ? 1 : 0) + (high != nullptr ? 1 : 0);
  const size_t joined_bytes = (low != nullptr ? low->size : 0) + (high != nullptr ? high->size : 0);
  char* const address = low != nullptr ? low->address : block.address;
  const size_t size = block.size + joined_bytes;
  Block* whole = low != nullptr ? low : high;  // resize() keeps its place among the free blocks if possible
  if (whole == nullptr) {
    whole = &block;
    pool.free.insert(block);
  } else {
    if (joined == 2) {
      pool.free.erase(*high);
      unlink(*high);
    }
    unlink(block);
    pool.free.resize(*whole, address, size);
  }
  whole->freed_at = pool.searches;
  const bool is_split = !whole->is_whole_segment();
  reporter_.statistics.inactive_split_changed(
      pool, (is_split ? 1 : 0) - joined,
      static_cast<ptrdiff_t>(is_split ? size : 0) - static_cast<ptrdiff_t>(joined_bytes));
}

}  // namespace openreg::runtime
