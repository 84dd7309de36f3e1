// SPDX-License-Identifier: BSD-3-Clause
// The units that the caching allocator deals in: a segment is one allocation of the driver, cut into blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cache/memory_provider.h"

namespace openreg::runtime {

struct Block;
struct BlockPool;

// What free blocks are ordered by.
struct BlockKey {
  int64_t stream;
  size_t size;
};

// Orders free blocks so that lower_bound() of a key gives the best fit among the blocks of a stream.
struct BlockOrder {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, const BlockKey& b) const;
};

using FreeTree = std::set<Block*, BlockOrder>;

struct Segment {
  char* address = nullptr;
  size_t size = 0;  // bytes
  BlockPool* pool = nullptr;
  Block* first = nullptr;    // of the blocks that it is cut into, a list in the order of their addresses
  bool is_oversize = false;  // above max_split_size
};

struct Block {
  char* address = nullptr;
  size_t size = 0;     // bytes
  int64_t stream = 0;  // whose later work may reuse it; one for all blocks of a segment
  Segment* segment = nullptr;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool is_allocated = false;
  bool is_oversize = false;            // an allocated block above max_split_size
  int event_count = 0;                 // by other streams that have not finished, of a freed block
  size_t requested = 0;                // what the user asked for, of an allocated block
  size_t freed_at = 0;                 // of a free block: the searches of its pool at that time
  std::vector<StreamKey> stream_uses;  // streams named by record_stream(), of an allocated block
  Block* next_in_bucket = nullptr;     // of AllocatedBlocks
  FreeTree::const_iterator position;   // of a free block
  FreeTree::node_type node;            // of the tree of free blocks, while it is not there: kept for its return

  bool is_whole_segment() const { return previous == nullptr && next == nullptr; }
  bool is_free() const { return !is_allocated && event_count == 0; }
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
