// SPDX-License-Identifier: BSD-3-Clause
// How large blocks and segments are, with PyTorch's constants and settings (source: c10/core/AllocatorConfig.h); all in
// bytes.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/util/llvmMathExtras.h>

#include <cstddef>
#include <limits>

#include "block.h"

namespace openreg::runtime {

using AllocatorConfig = c10::CachingAllocator::AcceleratorAllocatorConfig;

inline constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

inline size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

// roundup_power2_divisions: sizes between two powers of 2 are rounded to one of so many steps, so that blocks of
// slightly different sizes serve each other.
inline size_t block_size_for(size_t requested) {
  using c10::CachingAllocator::kMinBlockSize;
  const size_t divisions = AllocatorConfig::roundup_power2_divisions(requested);
  if (divisions > 1 && requested > kMinBlockSize * divisions) {
    return round_up(requested, c10::llvm::PowerOf2Floor(requested) / divisions);
  }
  return requested < kMinBlockSize ? kMinBlockSize : round_up(requested, kMinBlockSize);
}

inline bool is_small(size_t block_size) {
  return block_size <= c10::CachingAllocator::kSmallSize;
}

// max_split_size_mb: blocks of this size and above are not divided, and serve only requests that are as large.
inline bool is_oversize(size_t size) {
  return size >= AllocatorConfig::max_split_size();
}

inline size_t segment_size_for(size_t block_size) {
  using namespace c10::CachingAllocator;
  if (is_small(block_size)) {
    return kSmallBuffer;
  }
  return block_size < kMinLargeAlloc ? AllocatorConfig::large_segment_size() : round_up(block_size, kRoundLarge);
}

// Whether a free block serves a request that fits into it.
inline bool serves(const Block& block, size_t size) {
  if (!is_oversize(size)) {
    return !is_oversize(block.size);
  }
  return block.size - size < AllocatorConfig::max_non_split_rounding_size();
}

// Whether what a request leaves of a block is kept as a block of its own.
inline bool worth_splitting(const Block& block, size_t size) {
  using namespace c10::CachingAllocator;
  const size_t rest = block.size - size;
  return block.pool->is_small ? rest >= kMinBlockSize : rest > kSmallSize && !is_oversize(size);
}

}  // namespace openreg::runtime
