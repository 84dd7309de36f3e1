// SPDX-License-Identifier: BSD-3-Clause
// The rules of the caching allocator for the sizes of segments, for the free blocks that may serve a request, and for
// splits. All sizes are in bytes. The constants are PyTorch's (source: c10/core/AllocatorConfig.h), and
// allocator/driver_memory_provider.cpp asserts that they are equal.
#pragma once

#include <cstddef>

#include "cache/block.h"
#include "cache/memory_provider.h"

namespace openreg::runtime {

inline constexpr size_t kMinBlock = 512;                     // sizes of blocks are multiples of it
inline constexpr size_t kSmallRequest = size_t{1} << 20;     // largest request that the pool of small blocks serves
inline constexpr size_t kSmallSegment = size_t{2} << 20;     // size of segments of that pool
inline constexpr size_t kOwnSegment = size_t{10} << 20;      // smallest request whose segment has the request's size
inline constexpr size_t kSegmentRounding = size_t{2} << 20;  // unit to which the size of such a segment is rounded up

inline size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

inline bool is_small(size_t block_size) {
  return block_size <= kSmallRequest;
}

// Returns the usual size of a new segment for a block.
inline size_t segment_size_for(size_t block_size, const SegmentSettings& settings) {
  if (is_small(block_size)) {
    return kSmallSegment;
  }
  return block_size < kOwnSegment ? settings.large_segment : round_up(block_size, kSegmentRounding);
}

// The parameters of one allocation.
struct AllocParams {
  size_t requested = 0;  // bytes that the user requested
  size_t size = 0;       // bytes of a block for it
  int64_t stream = 0;
  // Setting max_split_size_mb. Free blocks of this size and above serve only oversize requests, and are not split.
  size_t max_split_size = kUnlimited;

  // Returns true for an oversize request, that is, one of max_split_size or above.
  bool is_oversize() const { return size >= max_split_size; }
};

// Returns true if a free block may serve a request that fits into it. An oversize request accepts only a block that is
// not much larger, because the block is not split.
inline bool is_eligible(const Block& block, const AllocParams& request, MemoryProvider& provider) {
  if (!request.is_oversize()) {
    return block.size < request.max_split_size;
  }
  return block.size - request.size < provider.settings().max_non_split_rounding;
}

// Returns true if `block` is to be split, so that the bytes after the request become a block of their own. `small` is
// BlockPool::is_small of the block's pool.
inline bool should_split(const Block& block, bool small, const AllocParams& request) {
  const size_t rest = block.size - request.size;
  return small ? rest >= kMinBlock : rest > kSmallRequest && !request.is_oversize();
}

}  // namespace openreg::runtime
