// SPDX-License-Identifier: BSD-3-Clause
// What one device's cache tries, step by step, for a request that no free block serves.
#include <algorithm>

#include "allocator_settings.h"
#include "device_cache.h"
#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "size_class.h"
#include "stat_array.h"

namespace openreg::runtime {

namespace {

size_t capacity_of(c10::DeviceIndex index) {
  const CurrentDevice current(index);
  size_t free = 0;
  size_t total = 0;
  OPENREG_CHECK(orMemGetInfo(&free, &total));
  return total;
}

}  // namespace

// Null when nothing helps. The lock is released while the device is waited for.
Block* DeviceCache::make_room(size_t size, c10::StreamId stream, const Context& context,
                              std::unique_lock<std::mutex>& lock) {
  const auto wait_unlocked = [&] {
    lock.unlock();
    wait();
    lock.lock();
    process_events();
  };
  if (garbage() > 0 && !is_capturing()) {
    wait_unlocked();
    release_garbage(context);
  }
  Block* block = add_segment(pool_for(size, stream), size, stream, context);
  if (block != nullptr || is_capturing()) {
    return block;  // a capture must not wait for what it records
  }
  ++stats_.num_alloc_retries;
  wait_unlocked();
  BlockPool& pool = pool_for(size, stream);
  block = find_free(pool, size, stream);  // what other streams were still using
  if (block == nullptr && !is_capturing() && release_oversize(pool, size, stream, context)) {
    block = add_segment(pool, size, stream, context);
  }
  if (block == nullptr && !is_capturing()) {
    release_cached({0, 0}, context);
    block = add_segment(pool_for(size, stream), size, stream, context);
  }
  return block;
}

// Waits for all work of the device, after which segments may be given back. Called without the mutex, so that the GIL
// can be released. A failed device has nothing left to wait for.
void DeviceCache::wait() {
  {
    const GilRelease release;
    const CurrentDevice current(index_);
    orDeviceSynchronize();
    orGetLastError();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.num_sync_all_streams;
}

// With max_split_size_mb: gives blocks back that only requests as large as themselves can use; one that suffices, or
// else the largest ones. False if that makes no room for the request.
bool DeviceCache::release_oversize(BlockPool& pool, size_t size, c10::StreamId stream, const Context& context) {
  const size_t needed = std::max(size, AllocatorConfig::max_split_size());
  if (needed == kUnlimited) {
    return false;
  }
  auto it = pool.free.lower_bound(BlockKey{stream, needed});
  size_t released = 0;
  if (it == pool.free.end() || (*it)->stream != stream) {
    while (released < needed && it != pool.free.begin()) {
      --it;
      Block* block = *it;
      if (block->stream != stream || !is_oversize(block->size)) {
        break;
      }
      if (block->is_whole_segment()) {
        released += block->size;
        it = pool.free.erase(it);
        release_segment(*block, context);
      }
    }
    return released >= needed;
  }
  Block* block = *it;
  if (!block->is_whole_segment()) {
    return false;
  }
  pool.free.erase(it);
  release_segment(*block, context);
  return true;
}

// Bytes above garbage_collection_threshold, which is a part of what the cache may hold.
size_t DeviceCache::garbage() const {
  const double threshold = AllocatorConfig::garbage_collection_threshold();
  if (threshold <= 0) {
    return 0;
  }
  const size_t most = std::min(limit(), capacity_of(index_));
  const auto tolerated = static_cast<size_t>(threshold * static_cast<double>(most));
  const auto reserved = static_cast<size_t>(stats_.reserved_bytes[kAggregate].current);
  return reserved > tolerated ? reserved - tolerated : 0;
}

// Gives large cached segments back until nothing is above the threshold: first what has lain unused longest.
void DeviceCache::release_garbage(const Context& context) {
  std::vector<Block*> unused;
  std::copy_if(large_.free.begin(), large_.free.end(), std::back_inserter(unused),
               [](const Block* block) { return block->is_whole_segment(); });
  std::sort(unused.begin(), unused.end(), [](const Block* a, const Block* b) { return a->freed_at < b->freed_at; });
  for (Block* block : unused) {
    if (garbage() == 0) {
      return;
    }
    large_.free.erase(block);
    release_segment(*block, context);
  }
}

double DeviceCache::memory_fraction() const {
  const double fraction = fraction_.load(std::memory_order_relaxed);
  return fraction < 0 ? memory_fraction_setting() : fraction;
}

// Bytes that the cache may hold.
size_t DeviceCache::limit() const {
  const double fraction = memory_fraction();
  if (fraction >= 1) {
    return kUnlimited;
  }
  return static_cast<size_t>(fraction * static_cast<double>(capacity_of(index_)));
}

}  // namespace openreg::runtime
