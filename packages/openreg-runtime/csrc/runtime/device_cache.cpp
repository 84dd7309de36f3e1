// SPDX-License-Identifier: BSD-3-Clause
// The caching allocator's work on one device: best fit per stream, splitting, coalescing, deferred release.
#include "device_cache.h"

#include <algorithm>
#include <limits>

#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

using c10::CachingAllocator::for_each_selected_stat_type;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatTypes;

StatTypes stat_types(const BlockPool& pool) {
  return {true, pool.is_small, !pool.is_small};  // aggregate, small pool, large pool
}

void add(StatArray& stat, const BlockPool& pool, size_t amount) {
  for_each_selected_stat_type(stat_types(pool), [&](size_t type) { stat[type].increase(amount); });
}

void subtract(StatArray& stat, const BlockPool& pool, size_t amount) {
  for_each_selected_stat_type(stat_types(pool), [&](size_t type) { stat[type].decrease(amount); });
}

// A range of the driver, or null when the device has no room for it.
char* driver_allocate(c10::DeviceIndex index, size_t size) {
  const CurrentDevice current(index);
  void* address = nullptr;
  const orError_t status = orMalloc(&address, size);
  if (status == orErrorMemoryAllocation) {
    orGetLastError();  // expected: the caller has ways to make room
    return nullptr;
  }
  OPENREG_CHECK(status);
  return static_cast<char*>(address);
}

}  // namespace

void* DeviceCache::allocate(size_t size, c10::StreamId stream) {
  // A size that rounding would wrap cannot fit either; the largest number that is a multiple keeps the arithmetic
  // sound.
  constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 2;
  const size_t rounded = block_size_for(std::min(size, kLargest));
  BlockPool& pool = rounded <= c10::CachingAllocator::kSmallSize ? small_ : large_;
  std::unique_lock<std::mutex> lock(mutex_);
  process_events();
  Block* block = allocate_block(pool, rounded, stream);
  if (block == nullptr) {
    ++stats_.num_alloc_retries;
    lock.unlock();
    empty();  // waits for the device, with the GIL released
    lock.lock();
    block = allocate_block(pool, rounded, stream);
  }
  if (block == nullptr) {
    ++stats_.num_ooms;
    throw_out_of_memory(size);
  }
  split(*block, rounded);
  block->allocated = true;
  block->requested = size;
  allocated_.emplace(block->address, block);
  add(stats_.allocation, pool, 1);
  add(stats_.active, pool, 1);
  add(stats_.allocated_bytes, pool, block->size);
  add(stats_.active_bytes, pool, block->size);
  add(stats_.requested_bytes, pool, size);
  report_to_profiler(block->address, static_cast<int64_t>(block->size));
  return block->address;
}

void DeviceCache::release(void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocated_.find(address);
  if (found == allocated_.end()) {
    return;
  }
  Block& block = *found->second;
  allocated_.erase(found);
  block.allocated = false;
  subtract(stats_.allocation, *block.pool, 1);
  subtract(stats_.allocated_bytes, *block.pool, block.size);
  subtract(stats_.requested_bytes, *block.pool, block.requested);
  report_to_profiler(address, -static_cast<int64_t>(block.size));
  for (const c10::Stream& stream : block.other_uses) {
    Event event;
    event.record_for_release(stream);
    events_[stream].emplace_back(std::move(event), &block);
    ++block.pending_events;
  }
  block.other_uses.clear();
  if (block.pending_events == 0) {
    free_block(block);
  }
}

void DeviceCache::record_stream(void* address, c10::Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocated_.find(address);
  if (found == allocated_.end()) {
    return;
  }
  Block& block = *found->second;
  // The id alone does not tell: the default streams of all devices share it.
  if (stream.device_index() == index_ && stream.id() == block.stream) {
    return;
  }
  if (std::find(block.other_uses.begin(), block.other_uses.end(), stream) == block.other_uses.end()) {
    block.other_uses.push_back(stream);
  }
}

void DeviceCache::empty() {
  {
    // Segments can be given back only after all work that used them. Waiting here, before the mutex is taken, allows to
    // wait without the GIL. A failed device has nothing left to wait for.
    const GilRelease release;
    const CurrentDevice current(index_);
    orDeviceSynchronize();
    orGetLastError();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  process_events();
  release_segments();
}

c10::CachingDeviceAllocator::DeviceStats DeviceCache::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

Block* DeviceCache::allocate_block(BlockPool& pool, size_t size, c10::StreamId stream) {
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

Block* DeviceCache::add_segment(BlockPool& pool, size_t size, c10::StreamId stream) {
  char* address = driver_allocate(index_, size);
  if (address == nullptr) {
    return nullptr;
  }
  ++stats_.num_device_alloc;
  add(stats_.segment, pool, 1);
  add(stats_.reserved_bytes, pool, size);
  auto* block = new Block;
  block->address = address;
  block->size = size;
  block->pool = &pool;
  block->stream = stream;
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

// Joins a block that is not in the pool with a neighbour, if that one is free. Returns the block that remains.
Block* DeviceCache::merge(Block& block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->allocated || neighbour->pending_events > 0) {
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

void DeviceCache::process_events() {
  for (auto& [stream, queue] : events_) {
    while (!queue.empty() && queue.front().first.query_for_release()) {
      Block& block = *queue.front().second;
      queue.pop_front();
      if (--block.pending_events == 0) {
        free_block(block);
      }
    }
  }
}

void DeviceCache::release_segments() {
  for (BlockPool* pool : {&small_, &large_}) {
    for (auto it = pool->free.begin(); it != pool->free.end();) {
      Block* block = *it;
      if (!block->is_whole_segment()) {
        ++it;
        continue;
      }
      it = pool->free.erase(it);
      OPENREG_WARN(orFree(block->address));
      ++stats_.num_device_free;
      subtract(stats_.segment, *pool, 1);
      subtract(stats_.reserved_bytes, *pool, block->size);
      delete block;
    }
  }
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
