// SPDX-License-Identifier: BSD-3-Clause
// Segments of one device's cache: taken from the driver and given back.
#include "device_cache.h"
#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "size_class.h"
#include "stat_array.h"

namespace openreg::runtime {

namespace {

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

// A segment of the usual size for a request, or, near the end of the capacity, one that it fits into exactly. Null when
// the device or the memory fraction has no room for it.
Block* DeviceCache::add_segment(BlockPool& pool, size_t size, c10::StreamId stream, const Context& context) {
  Block* block = take_segment(pool, segment_size_for(size), stream, context);
  return block != nullptr ? block : take_segment(pool, size, stream, context);
}

Block* DeviceCache::take_segment(BlockPool& pool, size_t size, c10::StreamId stream, const Context& context) {
  if (static_cast<size_t>(stats_.reserved_bytes[kAggregate].current) + size > limit()) {
    return nullptr;
  }
  char* address = driver_allocate(index_, size);
  if (address == nullptr) {
    return nullptr;
  }
  ++stats_.num_device_alloc;
  add(stats_.segment, pool, 1);
  add(stats_.reserved_bytes, pool, size);
  if (pool.owner != nullptr) {
    ++pool.owner->segments;
    add(stats_.reserved_bytes_by_private_pools[pool.owner->id], pool, size);
  }
  auto* block = new Block;
  block->address = address;
  block->size = size;
  block->pool = &pool;
  block->stream = stream;
  block->in_oversize_segment = is_oversize(size);
  if (block->in_oversize_segment) {
    stats_.oversize_segments.increase(1);
  }
  block->segment_context = context;
  segments_.insert(block);
  trace(Action::SEGMENT_ALLOC, *block, size, context);
  return block;
}

// Gives the memory of a whole segment that is not in its pool any more back to the driver.
void DeviceCache::release_segment(Block& block, const Context& context) {
  const BlockPool& pool = *block.pool;
  trace(Action::SEGMENT_FREE, block, block.size, context);
  OPENREG_WARN(orFree(block.address));
  ++stats_.num_device_free;
  subtract(stats_.segment, pool, 1);
  subtract(stats_.reserved_bytes, pool, block.size);
  if (pool.owner != nullptr) {
    --pool.owner->segments;
    subtract(stats_.reserved_bytes_by_private_pools[pool.owner->id], pool, block.size);
  }
  if (block.in_oversize_segment) {
    stats_.oversize_segments.decrease(1);
  }
  segments_.erase(&block);
  delete &block;
}

void DeviceCache::release_segments(BlockPool& pool, const Context& context) {
  for (auto it = pool.free.begin(); it != pool.free.end();) {
    Block* block = *it;
    if (!block->is_whole_segment()) {
      ++it;
      continue;
    }
    it = pool.free.erase(it);
    release_segment(*block, context);
  }
}

// Gives the free segments of empty()'s `id` back. All work of the device is done.
void DeviceCache::release_cached(c10::MempoolId_t id, const Context& context) {
  const bool all = id == c10::MempoolId_t{0, 0};
  if (all) {
    release_segments(small_, context);
    release_segments(large_, context);
  }
  for (auto it = private_pools_.begin(); it != private_pools_.end();) {
    PrivatePool& pool = (it++)->second;  // which may be dropped
    if (all ? pool.users == 0 : pool.id == id && pool.may_shrink()) {
      release_segments(pool.small, context);
      release_segments(pool.large, context);
      drop_if_unused(pool);
    }
  }
}

}  // namespace openreg::runtime
