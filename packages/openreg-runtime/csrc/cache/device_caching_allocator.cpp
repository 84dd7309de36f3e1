// SPDX-License-Identifier: BSD-3-Clause
#include "cache/device_caching_allocator.h"

#include <algorithm>
#include <utility>

namespace openreg::runtime {

DeviceCachingAllocator::DeviceCachingAllocator(int device, MemoryProvider& provider)
    : device_(device),
      provider_(provider),
      poisons_(provider.poisons()),
      reporter_(device, provider),
      blocks_(reporter_),
      segments_(provider, reporter_, blocks_),
      deferred_(provider),
      retry_{provider,
             pools_,
             segments_,
             reporter_,
             [this] { process_deferred_frees(); },
             [this](const AllocParams& request) { return find_free(request); }} {}

void* DeviceCachingAllocator::allocate(const AllocParams& request, OomReport& failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  process_deferred_frees();
  Block* free = find_free(request);
  if (free == nullptr) {
    free = retry_.find(request, lock);
  }
  if (free == nullptr) {
    failure = {provider_.memory_info(), reporter_.statistics.allocated_bytes.current(),
               reporter_.statistics.reserved_bytes.current(), segments_.limit(), pools_.is_capturing()};
    reporter_.out_of_memory(request, failure.device.free);
    return nullptr;
  }
  Block& block = blocks_.split_block(*free, request.size, should_split(*free, free->segment->pool->is_small, request));
  block.is_allocated = true;
  block.is_oversize = block.size >= request.max_split_size;
  block.requested = request.requested;
  allocated_.insert(block);
  reporter_.block_allocated(block);
  char* const address = block.address;
  const size_t size = block.size;
  lock.unlock();
  if (poisons_) {
    provider_.poison_allocated(address, size, request.stream);
  }
  return address;
}

bool DeviceCachingAllocator::release(void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Block* block = allocated_.take(address);
  if (block == nullptr) {
    return false;
  }
  block->is_allocated = false;
  reporter_.free_requested(*block);
  if (!block->stream_uses.empty()) {
    deferred_.add(*block, pools_.is_capturing());
  }
  if (block->pending_fences == 0) {
    free_block(*block);
  }
  return true;
}

void DeviceCachingAllocator::record_stream(void* address, StreamKey stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Block* block = allocated_.find(address);
  // The comparison includes the device, because the default streams of all devices have the same id.
  if (block == nullptr || stream == StreamKey{device_, block->stream}) {
    return;
  }
  if (std::find(block->stream_uses.begin(), block->stream_uses.end(), stream) == block->stream_uses.end()) {
    block->stream_uses.push_back(stream);
    reporter_.stream_recorded(*block, stream);
  }
}

bool DeviceCachingAllocator::empty(PoolId id) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pools_.is_capturing()) {
      return false;
    }
    process_deferred_frees();  // records fences of blocks released during a capture, before synchronize()
  }
  provider_.synchronize();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++reporter_.statistics.device_waits;
  if (!pools_.is_capturing()) {  // a capture may have begun meanwhile
    process_deferred_frees();
    pools_.shrink(id, [this](BlockPool& pool) { segments_.release_free(pool); });
  }
  return true;
}

size_t DeviceCachingAllocator::allocated_size(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Block* block = allocated_.find(address);
  return block == nullptr ? 0 : block->size;
}

void DeviceCachingAllocator::begin_pool_filter(PoolFilter filter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pools_.begin_pool_filter(std::move(filter));
}

bool DeviceCachingAllocator::end_pool_filter(PoolId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pools_.end_pool_filter(id);
}

void DeviceCachingAllocator::retain_pool(PoolId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pools_.retain(id);
}

bool DeviceCachingAllocator::release_pool(PoolId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pools_.release(id);
}

void DeviceCachingAllocator::inspect(const std::function<void(const SegmentMap&, Statistics&)>& visit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  visit(segments_.all(), reporter_.statistics);
}

void DeviceCachingAllocator::add_observer(uint64_t id, uint32_t kinds, MemoryObserverList::Callback callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reporter_.observers.add(id, kinds, std::move(callback));
}

std::optional<std::string> DeviceCachingAllocator::remove_observer(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reporter_.observers.remove(id);
}

Block* DeviceCachingAllocator::find_free(const AllocParams& request) {
  BlockPool& pool = pools_.pool_for(request.size, request.stream);
  ++pool.searches;
  Block* block = pool.free.best_fit(request.stream, request.size);
  return block == nullptr || !is_eligible(*block, request, provider_) ? nullptr : block;
}

void DeviceCachingAllocator::process_deferred_frees() {
  if (!deferred_.is_empty()) {
    deferred_.process(pools_.is_capturing(), [this](Block& block) { free_block(block); });
  }
}

void DeviceCachingAllocator::free_block(Block& block) {
  reporter_.free_completed(block);
  if (poisons_ && !pools_.is_capturing()) {
    const PrivatePool* owner = block.segment->pool->owner;
    if (owner == nullptr || !owner->used_by_graph) {
      provider_.poison_freed(block.address, block.size, block.stream);
    }
  }
  blocks_.merge_block(block);
}

}  // namespace openreg::runtime
