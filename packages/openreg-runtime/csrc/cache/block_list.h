// SPDX-License-Identifier: BSD-3-Clause
// The blocks of segments: cut where less is needed, joined where neighbours are free.
#pragma once

#include <cstddef>
#include <deque>

#include "cache/allocator_reporter.h"
#include "cache/block.h"

namespace openreg::runtime {

// Keeps the objects that stand for no memory at the moment, because each allocation divides a block and each release
// joins two. Not thread-safe.
class BlockList {
 public:
  explicit BlockList(AllocatorReporter& reporter) : reporter_(reporter) {}

  // The free block of a whole new segment, in its pool.
  void add_segment(Segment& segment, int64_t stream);
  // Takes the only block of a segment out of its pool and forgets it.
  void remove_segment(Segment& segment);

  // Takes `size` bytes from the beginning of a free block, or all of it. The result is in no pool.
  Block& split_block(Block& free, size_t size, bool split);
  // Puts a block that nobody uses any more into its pool, joined with its free neighbours. The block is not valid
  // afterwards.
  void merge_block(Block& block);

 private:
  Block* make();
  // A free block; nobody points to it any more.
  void drop(Block& block);
  // Removes a block from the list of its segment; its memory belongs to a neighbour now.
  void unlink(Block& block);

  AllocatorReporter& reporter_;
  std::deque<Block> all_;
  Block* spare_ = nullptr;  // a list through `next`
};

}  // namespace openreg::runtime
