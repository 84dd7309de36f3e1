// SPDX-License-Identifier: BSD-3-Clause
// Blocks of one device's cache: best fit per stream, splitting, coalescing.
#include "device_cache.h"
#include "size_class.h"
#include "stat_array.h"

namespace openreg::runtime {

Block* DeviceCache::allocate_block(size_t size, c10::StreamId stream) {
  BlockPool& pool = pool_for(size, stream);
  Block* block = find_free(pool, size, stream);
  if (block == nullptr) {
    block = add_segment(pool, segment_size_for(size), stream);
  }
  // Near the end of the capacity a segment of the usual size may not fit any more where the block itself does.
  return block != nullptr ? block : add_segment(pool, size, stream);
}

Block* DeviceCache::find_free(BlockPool& pool, size_t size, c10::StreamId stream) {
  Block key;
  key.stream = stream;
  key.size = size;
  const auto found = pool.free.lower_bound(&key);
  if (found == pool.free.end() || (*found)->stream != stream) {
    return nullptr;
  }
  Block* block = *found;
  pool.free.erase(found);
  count_inactive_split(*block, false);
  return block;
}

void DeviceCache::split(Block& block, size_t size) {
  const size_t rest_size = block.size - size;
  if (!worth_splitting(*block.pool, rest_size)) {
    return;
  }
  auto* rest = new Block;
  rest->address = block.address + size;
  rest->size = rest_size;
  rest->pool = block.pool;
  rest->stream = block.stream;
  rest->previous = &block;
  rest->next = block.next;
  if (rest->next != nullptr) {
    rest->next->previous = rest;
  }
  block.next = rest;
  block.size = size;
  block.pool->free.insert(rest);
  count_inactive_split(*rest, true);
}

void DeviceCache::free_block(Block& block) {
  BlockPool& pool = *block.pool;
  subtract(stats_.active, pool, 1);
  subtract(stats_.active_bytes, pool, block.size);
  Block* whole = merge(block, block.previous);
  whole = merge(*whole, whole->next);
  pool.free.insert(whole);
  count_inactive_split(*whole, true);
}

// Joins a block that is not in the pool with a neighbour, if that one is free. Returns the block that remains: the
// lower one, so that the first block of a segment stays.
Block* DeviceCache::merge(Block& block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free()) {
    return &block;
  }
  neighbour->pool->free.erase(neighbour);
  count_inactive_split(*neighbour, false);
  Block* low = neighbour == block.previous ? neighbour : &block;
  Block* high = low == neighbour ? &block : neighbour;
  low->size += high->size;
  low->next = high->next;
  if (low->next != nullptr) {
    low->next->previous = low;
  }
  delete high;
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
