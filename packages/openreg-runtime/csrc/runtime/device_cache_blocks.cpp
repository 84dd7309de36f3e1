// SPDX-License-Identifier: BSD-3-Clause
// Blocks of one device's cache: best fit per stream, splitting, coalescing.
#include "device_cache.h"
#include "poison.h"
#include "size_class.h"
#include "stat_array.h"

namespace openreg::runtime {

// Each allocation divides a block and each release joins two, so the objects are used again and again.
Block* DeviceCache::make_block() {
  if (spare_blocks_.empty()) {
    return new Block;
  }
  Block* block = spare_blocks_.back();
  spare_blocks_.pop_back();
  return block;
}

void DeviceCache::drop_block(Block* block) {
  Block empty;
  empty.node = std::move(block->node);
  *block = std::move(empty);
  spare_blocks_.push_back(block);
}

Block* DeviceCache::find_free(BlockPool& pool, size_t size, c10::StreamId stream) {
  ++pool.searches;
  const auto found = pool.free.lower_bound(BlockKey{stream, size});
  if (found == pool.free.end() || (*found)->stream != stream || !serves(**found, size)) {
    return nullptr;
  }
  Block* block = *found;
  pool.take(found);
  count_inactive_split(*block, false);
  return block;
}

void DeviceCache::split(Block& block, size_t size) {
  if (!worth_splitting(block, size)) {
    return;
  }
  Block* rest = make_block();
  rest->address = block.address + size;
  rest->size = block.size - size;
  rest->pool = block.pool;
  rest->stream = block.stream;
  rest->freed_at = block.freed_at;
  rest->previous = &block;
  rest->next = block.next;
  if (rest->next != nullptr) {
    rest->next->previous = rest;
  }
  block.next = rest;
  block.size = size;
  block.pool->put(*rest);
  count_inactive_split(*rest, true);
}

void DeviceCache::free_block(Block& block, const Context& context) {
  trace(Action::FREE_COMPLETED, block, block.requested, context);
  BlockPool& pool = *block.pool;
  subtract(stats_.active, pool, 1);
  subtract(stats_.active_bytes, pool, block.size);
  if (poison_is_on() && !is_capturing() && (pool.owner == nullptr || !pool.owner->is_replayed)) {
    poison(block, index_);
  }
  block.context.reset();  // `context` may be the same object: not used from here on
  Block* whole = merge(block, block.previous);
  whole = merge(*whole, whole->next);
  whole->freed_at = pool.searches;
  pool.put(*whole);
  count_inactive_split(*whole, true);
}

// Joins a block that is not in the pool with a neighbour, if that one is free. Returns the block that remains: the
// lower one, so that the first block of a segment stays.
Block* DeviceCache::merge(Block& block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free()) {
    return &block;
  }
  neighbour->pool->take(neighbour->pool->free.find(neighbour));
  count_inactive_split(*neighbour, false);
  Block* low = neighbour == block.previous ? neighbour : &block;
  Block* high = low == neighbour ? &block : neighbour;
  low->size += high->size;
  low->next = high->next;
  if (low->next != nullptr) {
    low->next->previous = low;
  }
  drop_block(high);
  return low;
}

// Counts a free block that is only a part of its segment and so cannot be given back.
void DeviceCache::count_inactive_split(const Block& block, bool increase) {
  if (block.is_whole_segment()) {
    return;
  }
  const auto change = increase ? add : subtract;
  change(stats_.inactive_split, *block.pool, 1);
  change(stats_.inactive_split_bytes, *block.pool, block.size);
}

}  // namespace openreg::runtime
