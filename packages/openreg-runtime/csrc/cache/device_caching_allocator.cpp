// SPDX-License-Identifier: BSD-3-Clause
#include "device_cache.h"

#include <algorithm>
#include <utility>

namespace openreg::runtime {

DeviceCache::DeviceCache(int device, AllocatorBackend& backend)
    : device_(device),
      backend_(backend),
      poisons_(backend.poisons()),
      recorder_(device, backend),
      blocks_(recorder_),
      segments_(backend, recorder_, blocks_),
      deferred_(backend),
      retry_{backend,
             pools_,
             segments_,
             recorder_,
             [this] { process_deferred_frees(); },
             [this](const Request& request) { return find_free(request); }} {}

void* DeviceCache::allocate(const Request& request, OutOfMemory& failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  process_deferred_frees();
  Block* free = find_free(request);
  if (free == nullptr) {
    free = retry_.find(request, lock);
  }
  if (free == nullptr) {
    failure = {backend_.memory_info(), recorder_.statistics.allocated_bytes.current(),
               recorder_.statistics.reserved_bytes.current(), segments_.limit(), pools_.is_capturing()};
    recorder_.out_of_memory(request, failure.device.free);
    return nullptr;
  }
  Block& block = blocks_.carve(*free, request.size, worth_splitting(*free, free->segment->pool->is_small, request));
  block.is_allocated = true;
  block.is_oversize = block.size >= request.max_split_size;
  block.requested = request.requested;
  allocated_.insert(block);
  recorder_.block_allocated(block);
  char* const address = block.address;
  const size_t size = block.size;
  lock.unlock();
  if (poisons_) {
    backend_.poison(address, size, request.stream);
  }
  return address;
}

bool DeviceCache::release(void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Block* block = allocated_.take(address);
  if (block == nullptr) {
    return false;
  }
  block->is_allocated = false;
  recorder_.free_requested(*block);
  if (!block->other_uses.empty()) {
    deferred_.add(*block, pools_.is_capturing());
  }
  if (block->pending_uses == 0) {
    free_block(*block);
  }
  return true;
}

void DeviceCache::record_stream(void* address, StreamKey stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Block* block = allocated_.find(address);
  // The id alone does not tell: the default streams of all devices share it.
  if (block == nullptr || stream == StreamKey{device_, block->stream}) {
    return;
  }
  if (std::find(block->other_uses.begin(), block->other_uses.end(), stream) == block->other_uses.end()) {
    block->other_uses.push_back(stream);
    recorder_.stream_recorded(*block, stream);
  }
}

bool DeviceCache::empty(PoolId id) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pools_.is_capturing()) {
      return false;
    }
    process_deferred_frees();  // marks what a capture kept back, so that it is waited for
  }
  backend_.synchronize();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++recorder_.statistics.device_waits;
  if (!pools_.is_capturing()) {  // or one began meanwhile
    process_deferred_frees();
    pools_.shrink(id, [this](BlockPool& pool) { segments_.release_free(pool); });
  }
  return true;
}

size_t DeviceCache::allocated_size(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Block* block = allocated_.find(address);
  return block == nullptr ? 0 : block->size;
}

void DeviceCache::begin_route(PoolRoute route) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pools_.begin_route(std::move(route));
}

bool DeviceCache::end_route(PoolId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pools_.end_route(id);
}

void DeviceCache::retain_pool(PoolId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pools_.retain(id);
}

bool DeviceCache::release_pool(PoolId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pools_.release(id);
}

void DeviceCache::inspect(const std::function<void(const SegmentMap&, Statistics&)>& visit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  visit(segments_.all(), recorder_.statistics);
}

void DeviceCache::add_observer(uint64_t id, uint32_t kinds, Observers::Callback callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  recorder_.observers.add(id, kinds, std::move(callback));
}

std::optional<std::string> DeviceCache::remove_observer(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorder_.observers.remove(id);
}

// Stays in its pool.
Block* DeviceCache::find_free(const Request& request) {
  BlockPool& pool = pools_.pool_for(request.size, request.stream);
  ++pool.searches;
  Block* block = pool.free.best_fit(request.stream, request.size);
  return block == nullptr || !serves(*block, request, backend_) ? nullptr : block;
}

void DeviceCache::process_deferred_frees() {
  if (!deferred_.is_empty()) {
    deferred_.process(pools_.is_capturing(), [this](Block& block) { free_block(block); });
  }
}

void DeviceCache::free_block(Block& block) {
  recorder_.free_completed(block);
  if (poisons_ && !pools_.is_capturing()) {
    const PrivatePool* owner = block.segment->pool->owner;
    if (owner == nullptr || !owner->is_replayed) {
      backend_.poison(block.address, block.size, block.stream);
    }
  }
  blocks_.coalesce(block);
}

}  // namespace openreg::runtime
