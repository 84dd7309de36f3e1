// SPDX-License-Identifier: BSD-3-Clause
// The units that the caching allocator of one device deals in.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

namespace openreg::runtime {

struct BlockPool;

// A part of a segment (one allocation of the driver). The blocks of a segment form a list in the order of their
// addresses.
struct Block {
  char* address = nullptr;
  size_t size = 0;       // bytes
  size_t requested = 0;  // what the user asked for, of an allocated block
  BlockPool* pool = nullptr;
  c10::StreamId stream = 0;  // whose later work may reuse it
  bool allocated = false;
  int pending_events = 0;               // uses by other streams that have not finished, of a freed block
  std::vector<c10::Stream> other_uses;  // streams named by record_stream(), of an allocated block
  Block* previous = nullptr;
  Block* next = nullptr;

  bool is_whole_segment() const { return previous == nullptr && next == nullptr; }
};

// Orders free blocks so that lower_bound() gives the best fit among the blocks of a stream.
struct BlockOrder {
  bool operator()(const Block* a, const Block* b) const {
    return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
  }
};

// The free blocks of one size class.
struct BlockPool {
  explicit BlockPool(bool small) : is_small(small) {}
  const bool is_small;
  std::set<Block*, BlockOrder> free;
};

// Size classes with PyTorch's constants (source: c10/core/AllocatorConfig.h); all in bytes.

inline size_t block_size_for(size_t requested) {
  using c10::CachingAllocator::kMinBlockSize;
  return requested < kMinBlockSize ? kMinBlockSize : (requested + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize;
}

inline size_t segment_size_for(size_t block_size) {
  using namespace c10::CachingAllocator;
  if (block_size <= kSmallSize) {
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
