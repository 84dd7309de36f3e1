// SPDX-License-Identifier: BSD-3-Clause
// How large blocks and segments are, with PyTorch's constants and settings (source: c10/core/AllocatorConfig.h); all in
// bytes.
#pragma once

#include <c10/core/AllocatorConfig.h>

#include <cstddef>

#include "block.h"

namespace openreg::runtime {

inline size_t block_size_for(size_t requested) {
  using c10::CachingAllocator::kMinBlockSize;
  return requested < kMinBlockSize ? kMinBlockSize : (requested + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
}

inline bool is_small(size_t block_size) {
  return block_size <= c10::CachingAllocator::kSmallSize;
}

inline size_t segment_size_for(size_t block_size) {
  using namespace c10::CachingAllocator;
  if (is_small(block_size)) {
    return kSmallBuffer;
  }
  if (block_size < kMinLargeAlloc) {
    return c10::CachingAllocator::AcceleratorAllocatorConfig::large_segment_size();
  }
  return (block_size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

// Whether the rest of a block is worth keeping as a block of its own.
inline bool worth_splitting(const BlockPool& pool, size_t rest) {
  using namespace c10::CachingAllocator;
  return pool.is_small ? rest >= kMinBlockSize : rest > kSmallSize;
}

}  // namespace openreg::runtime
