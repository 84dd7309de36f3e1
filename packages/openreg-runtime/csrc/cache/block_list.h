// SPDX-License-Identifier: BSD-3-Clause
// Splits free blocks for smaller requests and merges free neighbors in a segment.
#pragma once

#include <cstddef>
#include <deque>

#include "cache/allocator_reporter.h"
#include "cache/block.h"

namespace openreg::runtime {

// The owner of all Block objects of one device. It reuses objects that no longer represent memory, because most
// allocations split a block and most releases merge two. Not thread-safe.
class BlockList {
 public:
  explicit BlockList(AllocatorReporter& reporter) : reporter_(reporter) {}

  // Creates the free block that spans a new segment and inserts it into the segment's pool.
  void add_segment(Segment& segment, int64_t stream);
  // Removes the block of a segment, all of which is one free block, from its pool.
  void remove_segment(Segment& segment);

  // Removes the first `size` bytes of a free block from its pool, or all of it if `split` is false, and returns them as
  // a block, which is in no pool.
  Block& split_block(Block& free, size_t size, bool split);
  // Inserts a block that no stream uses into its pool, merged with its free neighbors. `block` is invalid afterwards.
  void merge_block(Block& block);

 private:
  // Returns a Block object whose block is not allocated and has no uses. The caller sets its address, size, stream,
  // segment and links.
  Block* make();
  // Keeps a Block object for make(). The object must be that of a free block, and no pointers to it may be left.
  void drop(Block& block);
  // Removes a block whose memory has become part of a neighbor from the list of its segment, and drops it.
  void unlink(Block& block);

  AllocatorReporter& reporter_;
  std::deque<Block> all_;
  Block* spare_ = nullptr;  // head of a list that is linked through `next`
};

}  // namespace openreg::runtime
