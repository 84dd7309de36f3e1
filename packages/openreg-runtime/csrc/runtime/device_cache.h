// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "block.h"
#include "history.h"
#include "openreg/runtime/event.h"

namespace openreg::runtime {

// Thread-safe. Never takes the GIL while it holds its mutex.
class DeviceCache {
 public:
  explicit DeviceCache(c10::DeviceIndex index) : index_(index) {}

  // At least `size` > 0 bytes for work of `stream`. Throws c10::OutOfMemoryError after having given all cached memory
  // back.
  void* allocate(size_t size, c10::StreamId stream);
  // Takes a block back; it is reused when the streams named by record_stream() are done with it. False for an unknown
  // address.
  bool release(void* address);
  // Keeps the block from being reused before what `stream`, of any device, holds when it is released is done. Ignores
  // unknown addresses.
  void record_stream(void* address, c10::Stream stream);
  // Gives every segment without allocated blocks back to the driver, after all work of the device: of the private pool
  // `id`, or, for {0, 0}, of the ordinary cache and of all pools without users. Throws while a capture is under way.
  void empty(c10::MempoolId_t id = {0, 0});

  // Private pools; openreg/runtime/memory_pool.h says what they mean.
  void begin_route(PoolRoute route);
  void end_route(c10::MempoolId_t id);
  void retain_pool(c10::MempoolId_t id);
  void release_pool(c10::MempoolId_t id);

  // History; openreg/runtime/memory_history.h says what they mean.
  void start_history(const HistoryOptions& options);
  void stop_history();
  MemorySnapshot snapshot(c10::MempoolId_t id);

  // Bytes of the allocated block that starts at an address; 0 if there is none.
  size_t allocated_size(void* address) const;

  // The part of the capacity that this cache may hold, 0 to 1.
  double memory_fraction() const;
  void set_memory_fraction(double fraction) { fraction_ = fraction; }

  c10::CachingDeviceAllocator::DeviceStats stats() const;
  void reset_accumulated_stats();
  void reset_peak_stats();

 private:
  // Blocks (device_cache_blocks.cpp).
  Block* make_block();
  void drop_block(Block* block);
  Block* find_free(BlockPool& pool, size_t size, c10::StreamId stream);
  void split(Block& block, size_t size);
  void free_block(Block& block, const Context& context);
  Block* merge(Block& block, Block* neighbour);
  void count_inactive_split(const Block& block, bool increase);

  // Segments (device_cache_segments.cpp).
  Block* add_segment(BlockPool& pool, size_t size, c10::StreamId stream, const Context& context);
  Block* take_segment(BlockPool& pool, size_t size, c10::StreamId stream, const Context& context);
  void release_segment(Block& block, const Context& context);
  void release_segments(BlockPool& pool, const Context& context);
  void release_cached(c10::MempoolId_t id, const Context& context);

  // What is tried when there is no free block (device_cache_room.cpp).
  Block* make_room(size_t size, c10::StreamId stream, const Context& context, std::unique_lock<std::mutex>& lock);
  void wait();
  bool release_oversize(BlockPool& pool, size_t size, c10::StreamId stream, const Context& context);
  size_t garbage() const;
  void release_garbage(const Context& context);

  // Blocks that other streams use (device_cache_events.cpp).
  void record_other_uses(Block& block);
  void process_events();

  // Private pools (device_cache_pools.cpp).
  BlockPool& pool_for(size_t size, c10::StreamId stream);
  PrivatePool& private_pool(c10::MempoolId_t id);
  void drop_if_unused(PrivatePool& pool);
  bool is_capturing() const { return captures_ > 0; }

  // History (device_cache_history.cpp).
  void trace(Action action, const Block& block, size_t size, const Context& context);
  void trace_event(Action action, size_t number, size_t size, c10::StreamId stream, const Context& context);

  // Limits (device_cache_room.cpp).
  size_t limit() const;

  // Reports (device_cache_report.cpp).
  [[noreturn]] void throw_out_of_memory(size_t requested, c10::StreamId stream, const Context& context);
  void report_to_profiler(void* address, int64_t size) const;

  const c10::DeviceIndex index_;
  mutable std::mutex mutex_;
  BlockPool small_{true, nullptr};
  BlockPool large_{false, nullptr};
  ska::flat_hash_map<void*, Block*> allocated_;
  std::unordered_set<Block*> segments_;  // the first block of each
  std::vector<Block*> spare_blocks_;     // objects that stand for no memory
  // Uses by other streams of blocks that were released, per stream in the order of the records.
  std::unordered_map<c10::Stream, std::deque<std::pair<Event, Block*>>> events_;
  std::vector<Block*> kept_back_;  // released with other uses while a capture was under way
  std::map<c10::MempoolId_t, PrivatePool> private_pools_;
  std::vector<PoolRoute> routes_;
  int captures_ = 0;                  // routes for captures
  std::atomic<double> fraction_{-1};  // set_memory_fraction(); negative: as PYTORCH_ALLOC_CONF says
  c10::CachingDeviceAllocator::DeviceStats stats_;
  History history_;
};

}  // namespace openreg::runtime
