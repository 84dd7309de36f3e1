// SPDX-License-Identifier: BSD-3-Clause
// History and snapshots of one device's cache.
#include <algorithm>

#include "device_cache.h"
#include "device_caches.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/memory_history.h"

namespace openreg::runtime {

namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;

void* stream_address(const Block& block) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(block.stream));
}

c10::MempoolId_t pool_id(const Block& block) {
  return block.pool->owner == nullptr ? c10::MempoolId_t{0, 0} : block.pool->owner->id;
}

BlockInfo describe(const Block& block) {
  BlockInfo info;
  info.size = block.size;
  info.allocated = block.allocated;
  info.active = !block.is_free();
  info.requested_size = info.active ? block.requested : 0;
  info.context_when_allocated = info.active ? block.context : nullptr;
  return info;
}

SegmentInfo describe_segment(const Block& first, c10::DeviceIndex index) {
  SegmentInfo info;
  info.device = index;
  info.address = reinterpret_cast<size_t>(first.address);
  info.stream = stream_address(first);
  info.is_large = !first.pool->is_small;
  info.owner_private_pool_id = pool_id(first);
  info.context_when_allocated = first.segment_context;
  for (const Block* block = &first; block != nullptr; block = block->next) {
    info.blocks.push_back(describe(*block));
    const BlockInfo& added = info.blocks.back();
    info.total_size += added.size;
    info.requested_size += added.allocated ? added.requested_size : 0;
    info.allocated_size += added.allocated ? added.size : 0;
    info.active_size += added.active ? added.size : 0;
  }
  return info;
}

}  // namespace

void DeviceCache::trace(Action action, const Block& block, size_t size, const Context& context) {
  if (C10_LIKELY(!history_.is_tracing())) {
    return;
  }
  history_.add({action, index_, reinterpret_cast<size_t>(block.address), size, stream_address(block), pool_id(block),
                c10::getApproximateTime(), history_.keeps(RecordContext::ALLOC) ? context : nullptr});
}

// What is about no block: `number` stands where the address would (the free bytes of the device, say).
void DeviceCache::trace_event(Action action, size_t number, size_t size, c10::StreamId stream, const Context& context) {
  if (history_.is_tracing()) {
    history_.add({action, index_, number, size, reinterpret_cast<void*>(static_cast<intptr_t>(stream)),
                  c10::MempoolId_t{0, 0}, c10::getApproximateTime(),
                  history_.keeps(RecordContext::ALLOC) ? context : nullptr});
  }
}

void DeviceCache::start_history(const HistoryOptions& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.start(options);
}

void DeviceCache::stop_history() {
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.stop();
}

MemorySnapshot DeviceCache::snapshot(c10::MempoolId_t id) {
  const Context context = history_.gather(RecordContext::ALLOC);
  const std::lock_guard<std::mutex> lock(mutex_);
  trace_event(Action::SNAPSHOT, 0, 0, 0, context);
  MemorySnapshot result;
  for (const Block* first : segments_) {
    if (id == c10::MempoolId_t{0, 0} || id == pool_id(*first)) {
      result.segments.push_back(describe_segment(*first, index_));
    }
  }
  std::sort(result.segments.begin(), result.segments.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  result.trace = history_.entries();
  return result;
}

void record_memory_history(c10::DeviceIndex index, const HistoryOptions& options) {
  check_device_index(index);
  device_cache(index).start_history(options);
}

void stop_memory_history(c10::DeviceIndex index) {
  check_device_index(index);
  device_cache(index).stop_history();
}

MemorySnapshot memory_snapshot(c10::DeviceIndex index, c10::MempoolId_t id) {
  check_device_index(index);
  return device_cache(index).snapshot(id);
}

}  // namespace openreg::runtime
