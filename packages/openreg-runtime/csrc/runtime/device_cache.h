// SPDX-License-Identifier: BSD-3-Clause
// The cached memory of one device.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/flat_hash_map.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "block.h"
#include "openreg/runtime/event.h"

namespace openreg::runtime {

// Thread-safe. Never takes the GIL while it holds its mutex.
class DeviceCache {
 public:
  explicit DeviceCache(c10::DeviceIndex index) : index_(index) {}

  // At least `size` > 0 bytes for work of `stream`. Throws c10::OutOfMemoryError after having given all cached memory
  // back.
  void* allocate(size_t size, c10::StreamId stream);
  // Takes a block back; it is reused when the streams named by record_stream() are done with it. Ignores unknown
  // addresses.
  void release(void* address);
  // Keeps the block from being reused before what `stream`, of any device, holds when it is released is done. Ignores
  // unknown addresses.
  void record_stream(void* address, c10::Stream stream);
  // Gives every segment without allocated blocks back to the driver, after all work of the device.
  void empty();

  c10::CachingDeviceAllocator::DeviceStats stats() const;
  void reset_accumulated_stats();
  void reset_peak_stats();

 private:
  Block* find_free(BlockPool& pool, size_t size, c10::StreamId stream);
  Block* add_segment(BlockPool& pool, size_t size, c10::StreamId stream);
  Block* allocate_block(BlockPool& pool, size_t size, c10::StreamId stream);
  void split(Block& block, size_t size);
  void free_block(Block& block);
  Block* merge(Block& block, Block* neighbour);
  void process_events();
  void release_segments();
  void count_inactive_split(const Block& block, bool increase);
  [[noreturn]] void throw_out_of_memory(size_t requested);
  void report_to_profiler(void* address, int64_t size) const;

  const c10::DeviceIndex index_;
  mutable std::mutex mutex_;
  BlockPool small_{true};
  BlockPool large_{false};
  ska::flat_hash_map<void*, Block*> allocated_;
  // Uses by other streams of blocks that were released, per stream in the order of the records.
  std::unordered_map<c10::Stream, std::deque<std::pair<Event, Block*>>> events_;
  c10::CachingDeviceAllocator::DeviceStats stats_;
};

}  // namespace openreg::runtime
