// SPDX-License-Identifier: BSD-3-Clause
// Allocates segments of one device from the driver and releases them, within the limit of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "cache/allocator_reporter.h"
#include "cache/block.h"
#include "cache/block_list.h"
#include "cache/memory_provider.h"
#include "cache/pools.h"
#include "cache/size_policy.h"

namespace openreg::runtime {

// The segments of one device. Not thread-safe.
class Segments {
 public:
  Segments(MemoryProvider& provider, AllocatorReporter& reporter, BlockList& blocks)
      : provider_(provider), reporter_(reporter), blocks_(blocks) {}

  // Returns the free block of a new segment of the usual size for the request. If there is no room for that, the
  // segment has exactly the size of the request. Null if the device or the limit has no room for either. Throws what
  // MemoryProvider::allocate() throws.
  Block* add(BlockPool& pool, const AllocParams& request);
  // Releases a segment that is one free block to the driver.
  void release(Segment& segment);
  // Releases all segments of a pool that are one free block to the driver.
  void release_free(BlockPool& pool);

  // Returns the number of bytes that may be reserved (per_process_memory_fraction), or kUnlimited.
  size_t limit();
  // Returns the number of reserved bytes above garbage_collection_threshold, a fraction of what may be reserved.
  // Returns 0 without a threshold.
  size_t garbage();

  // Returns all segments by address.
  const std::map<char*, std::unique_ptr<Segment>>& all() const { return segments_; }

 private:
  // Same as `add()`, except that the segment has `size` bytes.
  Block* take(BlockPool& pool, size_t size, const AllocParams& request);
  size_t reserved() const { return reporter_.statistics.reserved_bytes.current(); }

  MemoryProvider& provider_;
  AllocatorReporter& reporter_;
  BlockList& blocks_;
  std::map<char*, std::unique_ptr<Segment>> segments_;
};

}  // namespace openreg::runtime
