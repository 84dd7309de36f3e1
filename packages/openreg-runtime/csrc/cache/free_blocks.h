// SPDX-License-Identifier: BSD-3-Clause
// The free blocks of one pool, with a best-fit search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "cache/block.h"

namespace openreg::runtime {

// A search tree of free blocks. Not thread-safe. insert() allocates no memory for a block that was in a tree before.
class FreeBlocks {
 public:
  using const_iterator = FreeTree::const_iterator;

  // Returns the smallest block of the stream with at least `size` bytes, or null if there is none. Among blocks of one
  // size, chooses the one with the lowest address. Does not remove the block.
  Block* best_fit(int64_t stream, size_t size) const {
    const auto found = tree_.lower_bound(BlockKey{stream, size});
    return found == tree_.end() || (*found)->stream != stream ? nullptr : *found;
  }

  void insert(Block& block);
  void erase(Block& block);
  // Changes the address and the size, in bytes, of a block in the tree.
  void resize(Block& block, char* address, size_t size) {
    if (!keeps_its_place(block, address, size)) {
      move(block, address, size);
      return;
    }
    block.address = address;
    block.size = size;
  }

  // The functions below iterate in the order of stream, size and address.
  const_iterator begin() const { return tree_.begin(); }
  const_iterator end() const { return tree_.end(); }
  const_iterator lower_bound(const BlockKey& key) const { return tree_.lower_bound(key); }
  size_t size() const { return tree_.size(); }

 private:
  // Returns true if the order of the tree stays valid with the new address and size, so that the tree needs no search
  // and no rebalancing. This is the common case, because the block is mostly the largest of its stream before and after
  // a split or merge.
  bool keeps_its_place(const Block& block, const char* address, size_t size) const {
    if (size < block.size) {
      if (block.position == tree_.begin()) {
        return true;
      }
      const Block& before = **std::prev(block.position);
      return before.stream != block.stream || before.size < size || (before.size == size && before.address < address);
    }
    const auto next = std::next(block.position);
    if (next == tree_.end()) {
      return true;
    }
    const Block& after = **next;
    return after.stream != block.stream || after.size > size || (after.size == size && after.address > address);
  }
  // Removes the block, changes it and inserts it again.
  void move(Block& block, char* address, size_t size);

  FreeTree tree_;
};

}  // namespace openreg::runtime
