// SPDX-License-Identifier: BSD-3-Clause
// The units of the caching allocator. A segment is one allocation of the driver. It is split into blocks. A block
// serves one allocation of a program, or was freed but is still used by other streams, or is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cache/memory_provider.h"

namespace openreg::runtime {

struct Block;
struct BlockPool;

// A key for searches of free blocks, see BlockOrder.
struct BlockKey {
  int64_t stream;
  size_t size;
};

// An order of free blocks by stream, size and address. lower_bound() of a key returns the smallest block of the key's
// stream that has at least the key's size, if there is one.
struct BlockOrder {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, const BlockKey& b) const;
};

// A search tree of free blocks.
using FreeTree = std::set<Block*, BlockOrder>;

// One allocation of the driver.
struct Segment {
  char* address = nullptr;
  size_t size = 0;  // bytes
  BlockPool* pool = nullptr;
  Block* first = nullptr;    // head of the list of its blocks, which are in the order of their addresses
  bool is_oversize = false;  // at least max_split_size bytes
};

// A part of a segment that is allocated, free, or freed but still used by other streams.
struct Block {
  char* address = nullptr;
  size_t size = 0;     // bytes
  int64_t stream = 0;  // stream whose later tasks may reuse the block; equal for all blocks of a segment
  Segment* segment = nullptr;
  Block* previous = nullptr;  // neighbor in the segment
  Block* next = nullptr;      // neighbor in the segment
  bool is_allocated = false;
  bool is_oversize = false;  // an allocated block of at least max_split_size bytes
  // Freed block: the number of pending fences (markers in the streams that still use it, DeferredFrees). During a
  // capture no fence is recorded; the count is then 1 until the capture ends.
  int pending_fences = 0;
  size_t requested = 0;                // allocated block: bytes that the user requested
  size_t freed_at = 0;                 // free block: value of its pool's BlockPool::searches when it became free
  std::vector<StreamKey> stream_uses;  // streams passed to record_stream() since it was allocated
  Block* next_in_bucket = nullptr;     // link of AllocatedBlocks
  FreeTree::const_iterator position;   // free block: its place in the tree
  // Block outside of the tree: its node from when it was in the tree, so that inserting it again allocates nothing.
  // Empty if it never was.
  FreeTree::node_type node;

  bool is_whole_segment() const { return previous == nullptr && next == nullptr; }
  bool is_free() const { return !is_allocated && pending_fences == 0; }
};

inline bool BlockOrder::operator()(const Block* a, const Block* b) const {
  if (a->stream != b->stream) {
    return a->stream < b->stream;
  }
  return a->size != b->size ? a->size < b->size : a->address < b->address;
}

inline bool BlockOrder::operator()(const Block* a, const BlockKey& b) const {
  return a->stream != b.stream ? a->stream < b.stream : a->size < b.size;
}

}  // namespace openreg::runtime
