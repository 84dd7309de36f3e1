// SPDX-License-Identifier: BSD-3-Clause
// The free blocks of one pool, searched for the best fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block.h"

namespace openreg::runtime {

// Not thread-safe. A block that was here before is put back without an allocation.
class FreeBlocks {
 public:
  using const_iterator = FreeTree::const_iterator;

  // The smallest block of the stream with at least `size` bytes, of these the one at the lowest address; null if there
  // is none. It stays here.
  Block* best_fit(int64_t stream, size_t size) const;

  void insert(Block& block);
  void erase(Block& block);
  // Moves the bounds of a block that is here and stays.
  void resize(Block& block, char* address, size_t size);

  // By stream, then size, then address.
  const_iterator begin() const { return tree_.begin(); }
  const_iterator end() const { return tree_.end(); }
  const_iterator lower_bound(const BlockKey& key) const { return tree_.lower_bound(key); }
  size_t size() const { return tree_.size(); }

 private:
  bool keeps_its_place(const Block& block, char* address, size_t size) const;

  FreeTree tree_;
};

}  // namespace openreg::runtime
