// SPDX-License-Identifier: BSD-3-Clause
// The segments of one device: taken from the driver and given back, within the limit of this process.
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

// Not thread-safe.
class Segments {
 public:
  Segments(MemoryProvider& provider, AllocatorReporter& reporter, BlockList& blocks)
      : provider_(provider), reporter_(reporter), blocks_(blocks) {}

  // A free block of a new segment: of the usual size for a request, or, near the end of the capacity, of that which it
  // fits into exactly. Null when the device or the limit has no room for it.
  Block* add(BlockPool& pool, const AllocParams& request);
  // Gives a segment back that is one free block.
  void release(Segment& segment);
  // Gives all such segments of a pool back.
  void release_free(BlockPool& pool);

  // Bytes that may be held: per_process_memory_fraction.
  size_t limit();
  // Bytes above garbage_collection_threshold, which is a part of what may be held.
  size_t garbage();

  // By address.
  const std::map<char*, std::unique_ptr<Segment>>& all() const { return segments_; }

 private:
  Block* take(BlockPool& pool, size_t size, const AllocParams& request);
  size_t reserved() const { return reporter_.statistics.reserved_bytes.current(); }

  MemoryProvider& provider_;
  AllocatorReporter& reporter_;
  BlockList& blocks_;
  std::map<char*, std::unique_ptr<Segment>> segments_;
};

}  // namespace openreg::runtime
