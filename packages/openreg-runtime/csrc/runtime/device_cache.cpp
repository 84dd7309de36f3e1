// SPDX-License-Identifier: BSD-3-Clause
// The caching allocator's work on one device, as its users see it: allocate, release, name another use, empty.
#include "device_cache.h"

#include <algorithm>
#include <limits>

#include "poison.h"
#include "size_class.h"
#include "stat_array.h"

namespace openreg::runtime {

void* DeviceCache::allocate(size_t size, c10::StreamId stream) {
  // A size that rounding would wrap cannot fit either; the largest number that is a multiple keeps the arithmetic
  // sound.
  constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 2;
  const size_t rounded = block_size_for(std::min(size, kLargest));
  Context context = history_.gather(RecordContext::STATE);
  std::unique_lock<std::mutex> lock(mutex_);
  process_events();
  Block* block = find_free(pool_for(rounded, stream), rounded, stream);
  if (block == nullptr) {
    block = make_room(rounded, stream, context, lock);
  }
  if (block == nullptr) {
    ++stats_.num_ooms;
    throw_out_of_memory(size, stream, context);
  }
  split(*block, rounded);
  block->allocated = true;
  block->is_oversize = is_oversize(block->size);
  block->requested = size;
  allocated_.emplace(block->address, block);
  const BlockPool& pool = *block->pool;
  add(stats_.allocation, pool, 1);
  add(stats_.active, pool, 1);
  add(stats_.allocated_bytes, pool, block->size);
  add(stats_.active_bytes, pool, block->size);
  add(stats_.requested_bytes, pool, size);
  if (block->is_oversize) {
    stats_.oversize_allocations.increase(1);
  }
  report_to_profiler(block->address, static_cast<int64_t>(block->size));
  trace(Action::ALLOC, *block, size, context);
  block->context = std::move(context);
  lock.unlock();
  if (poison_is_on()) {
    poison(*block, index_);
  }
  return block->address;
}

bool DeviceCache::release(void* address) {
  const Context released_at = history_.gather(RecordContext::ALL);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocated_.find(address);
  if (found == allocated_.end()) {
    return false;
  }
  Block& block = *found->second;
  allocated_.erase(found);
  block.allocated = false;
  subtract(stats_.allocation, *block.pool, 1);
  subtract(stats_.allocated_bytes, *block.pool, block.size);
  subtract(stats_.requested_bytes, *block.pool, block.requested);
  if (block.is_oversize) {
    stats_.oversize_allocations.decrease(1);
  }
  report_to_profiler(address, -static_cast<int64_t>(block.size));
  const Context& context = released_at != nullptr ? released_at : block.context;
  trace(Action::FREE_REQUESTED, block, block.requested, context);
  if (!block.other_uses.empty()) {
    record_other_uses(block);
  }
  if (block.pending_events == 0) {
    free_block(block, context);
  }
  return true;
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

void DeviceCache::empty(c10::MempoolId_t id) {
  const Context context = history_.gather(RecordContext::ALL);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!is_capturing(), "the cache of openreg:", static_cast<int>(index_),
                " cannot be emptied while a capture is under way on that device, because that waits for all its work; "
                "call torch.openreg.empty_cache() before the capture begins or after it ended");
  }
  wait();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_capturing()) {  // or one began meanwhile
    process_events();
    release_cached(id, context);
  }
}

}  // namespace openreg::runtime
