// SPDX-License-Identifier: BSD-3-Clause
// Allocates the segments of one device from the driver and releases them. A segment is one allocation of the driver.
// PYTORCH_ALLOC_CONF and set_memory_fraction() may limit the memory that the process reserves in this way.
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

  // Allocates a segment of the usual size for the request (see size_policy.h) and returns its block, which is free. If
  // there is no room for that size, the segment has exactly the size of the request. Returns null if the device or the
  // limit has no room for either. Throws the exceptions of MemoryProvider::allocate().
  Block* add(BlockPool& pool, const AllocParams& request);
  // Returns a segment, all of which is one free block, to the driver.
  void release(Segment& segment);
  // Returns all segments of a pool that consist of one free block to the driver.
  void release_free(BlockPool& pool);

  // Returns the number of bytes that the process may reserve, or kUnlimited if there is no limit.
  size_t limit();
  // Returns the number of reserved bytes above the setting garbage_collection_threshold, which is a fraction of the
  // bytes that may be reserved. Returns 0 without a threshold.
  size_t garbage();

  // Returns all segments by address.
  const std::map<char*, std::unique_ptr<Segment>>& all() const { return segments_; }

 private:
  // Same as `add()`, except that it tries only a segment of `size` bytes.
  Block* take(BlockPool& pool, size_t size, const AllocParams& request);
  size_t reserved() const { return reporter_.statistics.reserved_bytes.current(); }

  MemoryProvider& provider_;
  AllocatorReporter& reporter_;
  BlockList& blocks_;
  std::map<char*, std::unique_ptr<Segment>> segments_;
};

}  // namespace openreg::runtime
