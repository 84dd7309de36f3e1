// SPDX-License-Identifier: BSD-3-Clause
// The caching allocator of one device (source: the class of that name in c10/cuda/CUDACachingAllocator.cpp). It
// reserves segments of the driver, splits them into blocks, and reuses released blocks. It depends on the interface
// MemoryProvider instead of PyTorch, so that tests run it under sanitizers. allocator/caching_allocator.cpp implements
// c10::DeviceAllocator with it.
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

// The state of the allocator after a failed allocation, for the error message.
struct OomReport {
  MemoryInfo device;
  size_t allocated = 0;       // bytes
  size_t reserved = 0;        // bytes
  size_t limit = kUnlimited;  // bytes that the allocator may reserve
  bool is_capturing = false;
};

// A caching allocator of one device. Thread-safe. It never acquires the GIL while it holds its mutex.
class DeviceCachingAllocator {
 public:
  DeviceCachingAllocator(int device, MemoryProvider& provider);
  DeviceCachingAllocator(const DeviceCachingAllocator&) = delete;
  DeviceCachingAllocator& operator=(const DeviceCachingAllocator&) = delete;

  // Returns the address of a block for tasks of the request's stream. If there is no room, it synchronizes the device,
  // without the mutex, releases unused segments to the driver and tries again. During a capture it does neither.
  // Returns null and sets `failure` if there is still no room. Throws the exceptions of MemoryProvider.
  void* allocate(const AllocParams& request, OomReport& failure);
  // Releases the block at `address`. The block is reused after the streams passed to record_stream() have completed the
  // tasks that they contain now. Returns false if no allocated block begins at `address`.
  bool release(void* address);
  // Prevents reuse of the block at `address` until the tasks that `stream` contains at its release are complete.
  // Ignores unknown addresses and the block's own stream.
  void record_stream(void* address, StreamKey stream);
  // Synchronizes the device, without the mutex, and releases all segments without allocated blocks to the driver: of
  // private pool `id`, or, for kDefaultPool, of the default pool and all private pools without users. Returns false and
  // does nothing during a capture. If a capture begins while the call blocks, it releases nothing and returns true.
  bool empty(PoolId id = kDefaultPool);
  // Returns the size in bytes of the allocated block that begins at `address`. Returns 0 if there is none.
  size_t allocated_size(const void* address) const;

  // Functions for private pools; see allocator/memory_pool.h and class Pools.
  void begin_pool_filter(PoolFilter filter);
  bool end_pool_filter(PoolId id);
  void retain_pool(PoolId id);
  bool release_pool(PoolId id);

  // Calls `visit` with all segments, by address, and the statistics. `visit` must not call this object, because the
  // mutex is held.
  using SegmentMap = std::map<char*, std::unique_ptr<Segment>>;
  void inspect(const std::function<void(const SegmentMap&, Statistics&)>& visit);

  // Functions for observers; see openreg/runtime/memory_observer.h and class MemoryObserverList.
  void add_observer(uint64_t id, uint32_t kinds, MemoryObserverList::Callback callback);
  std::optional<std::string> remove_observer(uint64_t id);

 private:
  // Returns a free block that serves the request, or null if there is none. Does not remove it from its pool.
  Block* find_free(const AllocParams& request);
  // Frees the deferred blocks that no stream uses any more.
  void process_deferred_frees();
  // Returns a released block that no stream uses to its pool.
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
