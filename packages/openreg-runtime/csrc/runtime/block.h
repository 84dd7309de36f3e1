// SPDX-License-Identifier: BSD-3-Clause
// The units that the caching allocator of one device deals in.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace openreg::runtime {

struct Block;
struct BlockPool;

// What free blocks are ordered by.
struct BlockKey {
  c10::StreamId stream;
  size_t size;
};

// Orders free blocks so that lower_bound() of a key gives the best fit among the blocks of a stream.
struct BlockOrder {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, const BlockKey& b) const;
};

using FreeBlocks = std::set<Block*, BlockOrder>;

// A part of a segment (one allocation of the driver). The blocks of a segment form a list in the order of their
// addresses.
struct Block {
  char* address = nullptr;
  size_t size = 0;       // bytes
  size_t requested = 0;  // what the user asked for, of an allocated block
  BlockPool* pool = nullptr;
  c10::StreamId stream = 0;  // whose later work may reuse it
  bool allocated = false;
  bool is_oversize = false;             // an allocated block above max_split_size
  bool in_oversize_segment = false;     // of the first block of a segment: the segment is above max_split_size
  size_t freed_at = 0;                  // of a free block: the searches of its pool at that time
  int pending_events = 0;               // uses by other streams that have not finished, of a freed block
  std::vector<c10::Stream> other_uses;  // streams named by record_stream(), of an allocated block
  std::shared_ptr<c10::GatheredContext> context;          // where a block in use was allocated, if that is recorded
  std::shared_ptr<c10::GatheredContext> segment_context;  // of the first block of a segment: where it was
  Block* previous = nullptr;
  Block* next = nullptr;
  FreeBlocks::node_type node;  // of the tree of free blocks, while it is not there: kept for its return

  bool is_whole_segment() const { return previous == nullptr && next == nullptr; }
  bool is_free() const { return !allocated && pending_events == 0; }
};

inline bool BlockOrder::operator()(const Block* a, const Block* b) const {
  return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
}

inline bool BlockOrder::operator()(const Block* a, const BlockKey& b) const {
  return std::tie(a->stream, a->size) < std::tie(b.stream, b.size);
}

struct PrivatePool;

// The free blocks of one size class.
struct BlockPool {
  BlockPool(bool small, PrivatePool* owner) : is_small(small), owner(owner) {}
  const bool is_small;
  PrivatePool* const owner;  // null: the device's ordinary cache
  FreeBlocks free;
  size_t searches = 0;  // for a free block; the clock that tells how long a block has lain unused

  void put(Block& block) {
    if (block.node.empty()) {
      free.insert(&block);
    } else {
      free.insert(std::move(block.node));
    }
  }
  void take(FreeBlocks::const_iterator position) {
    Block& block = **position;
    block.node = free.extract(position);
  }
};

// Memory that serves only the allocations routed to it.
struct PrivatePool {
  explicit PrivatePool(c10::MempoolId_t id) : id(id) {}
  const c10::MempoolId_t id;
  BlockPool small{true, this};
  BlockPool large{false, this};
  int users = 0;             // without users nothing is allocated from it
  int routes = 0;            // that lead to it now
  size_t segments = 0;       // that it holds
  bool is_replayed = false;  // a capture used it, so a replay may write to its free blocks

  // Whether free segments may go back to the driver.
  bool may_shrink() const { return users == 0 || !is_replayed; }
};

// Sends allocations to a pool (see begin_allocate_to_pool()).
struct PoolRoute {
  c10::MempoolId_t id;
  std::function<bool(c10::Stream)> accepts;
  bool for_capture;
};

}  // namespace openreg::runtime
