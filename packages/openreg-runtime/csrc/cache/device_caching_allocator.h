// SPDX-License-Identifier: BSD-3-Clause
// The caching allocator of one device. It knows PyTorch only by what MemoryProvider tells, so that sanitizers reach
// it; caching_allocator.cpp makes c10::DeviceAllocator of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cache/allocated_blocks.h"
#include "cache/allocator_reporter.h"
#include "cache/block.h"
#include "cache/block_list.h"
#include "cache/deferred_frees.h"
#include "cache/memory_provider.h"
#include "cache/oom_retry.h"
#include "cache/pools.h"
#include "cache/segments.h"
#include "cache/size_policy.h"

namespace openreg::runtime {

// What an allocation that failed leaves to say.
struct OomReport {
  MemoryInfo device;
  size_t allocated = 0;  // bytes, as are the next
  size_t reserved = 0;
  size_t limit = kUnlimited;
  bool is_capturing = false;
};

// Thread-safe. Never takes the GIL while it holds its lock.
class DeviceCachingAllocator {
 public:
  DeviceCachingAllocator(int device, MemoryProvider& provider);
  DeviceCachingAllocator(const DeviceCachingAllocator&) = delete;
  DeviceCachingAllocator& operator=(const DeviceCachingAllocator&) = delete;

  // Memory for work of the request's stream. Null, and the reason in `failure`, after all cached memory was given back.
  void* allocate(const AllocParams& request, OomReport& failure);
  // Takes a block back; it is reused when the streams named by record_stream() are done with it. False for an unknown
  // address.
  bool release(void* address);
  // Keeps the block from being reused before what `stream` holds when it is released is done. Ignores unknown
  // addresses.
  void record_stream(void* address, StreamKey stream);
  // Gives every segment without allocated blocks back to the driver, after all work of the device: of the private pool
  // `id`, or, for kDefaultPool, of the ordinary cache and of all pools without users. False, and nothing done, while
  // a capture is under way.
  bool empty(PoolId id = kDefaultPool);
  // Bytes of the allocated block that begins at an address; 0 if there is none.
  size_t allocated_size(const void* address) const;

  // Private pools; runtime/memory_pool.h says what they mean, pools.h what is returned.
  void begin_pool_filter(PoolFilter route);
  bool end_pool_filter(PoolId id);
  void retain_pool(PoolId id);
  bool release_pool(PoolId id);

  // Calls `visit` with the lock held.
  using SegmentMap = std::map<char*, std::unique_ptr<Segment>>;
  void inspect(const std::function<void(const SegmentMap&, Statistics&)>& visit);

  // openreg/runtime/memory_observer.h.
  void add_observer(uint64_t id, uint32_t kinds, MemoryObserverList::Callback callback);
  std::optional<std::string> remove_observer(uint64_t id);

 private:
  Block* find_free(const AllocParams& request);
  void process_deferred_frees();
  void free_block(Block& block);

  const int device_;
  MemoryProvider& provider_;
  const bool poisons_;
  mutable std::mutex mutex_;
  AllocatorReporter reporter_;
  Pools pools_;
  AllocatedBlocks allocated_;
  BlockList blocks_;
  Segments segments_;
  DeferredFrees deferred_;
  OomRetry retry_;
};

}  // namespace openreg::runtime
