// SPDX-License-Identifier: BSD-3-Clause
// Splits the blocks of segments for smaller requests and merges free neighbors.
#pragma once

#include <cstddef>
#include <deque>

#include "cache/allocator_reporter.h"
#include "cache/block.h"

namespace openreg::runtime {

// The owner of all Block objects of one device. Reuses objects that represent no memory, because most allocations split
// a block and most releases merge two. Not thread-safe.
class BlockList {
 public:
  explicit BlockList(AllocatorReporter& reporter) : reporter_(reporter) {}

  // Creates the free block that spans a new segment and inserts it into the segment's pool.
  void add_segment(Segment& segment, int64_t stream);
  // Removes the only block of a segment, which is free, from its pool.
  void remove_segment(Segment& segment);

  // Removes and returns the first `size` bytes of a free block, or without `split` all of it. The result is in no pool.
  Block& split_block(Block& free, size_t size, bool split);
  // Inserts a block that no stream uses into its pool, merged with its free neighbors. `block` is invalid afterwards.
  void merge_block(Block& block);

 private:
  // Returns an object that is not allocated and has no uses. The caller sets size, stream and links.
  Block* make();
  // Keeps the object of a free block, to which no pointers are left, for make().
  void drop(Block& block);
  // Removes a block whose memory has become part of a neighbor from the list of its segment, and drops it.
  void unlink(Block& block);

  AllocatorReporter& reporter_;
  std::deque<Block> all_;
  Block* spare_ = nullptr;  // head of a list that is linked through `next`
};

}  // namespace openreg::runtime
