// SPDX-License-Identifier: BSD-3-Clause
// The free blocks of one pool, searched for the best fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "cache/block.h"

namespace openreg::runtime {

// Not thread-safe. A block that was here before is put back without an allocation.
class FreeBlocks {
 public:
  using const_iterator = FreeTree::const_iterator;

  // The smallest block of the stream with at least `size` bytes, of these the one at the lowest address; null if there
  // is none. It stays here.
  Block* best_fit(int64_t stream, size_t size) const {
    const auto found = tree_.lower_bound(BlockKey{stream, size});
    return found == tree_.end() || (*found)->stream != stream ? nullptr : *found;
  }

  void insert(Block& block);
  void erase(Block& block);
  // Moves the bounds of a block that is here and stays.
  void resize(Block& block, char* address, size_t size) {
    if (!keeps_its_place(block, address, size)) {
      move(block, address, size);
      return;
    }
    block.address = address;
    block.size = size;
  }

  // By stream, then size, then address.
  const_iterator begin() const { return tree_.begin(); }
  const_iterator end() const { return tree_.end(); }
  const_iterator lower_bound(const BlockKey& key) const { return tree_.lower_bound(key); }
  size_t size() const { return tree_.size(); }

 private:
  // Most often what is left of a block, or what a freed one is joined with, is the greatest of its stream before and
  // after: then nothing has to be searched and balanced.
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
  void move(Block& block, char* address, size_t size);

  FreeTree tree_;
};

}  // namespace openreg::runtime
