// SPDX-License-Identifier: BSD-3-Clause
#include "free_blocks.h"

#include <iterator>
#include <utility>

namespace openreg::runtime {

Block* FreeBlocks::best_fit(int64_t stream, size_t size) const {
  const auto found = tree_.lower_bound(BlockKey{stream, size});
  return found == tree_.end() || (*found)->stream != stream ? nullptr : *found;
}

void FreeBlocks::insert(Block& block) {
  block.position = block.node.empty() ? tree_.insert(&block).first : tree_.insert(std::move(block.node)).position;
}

void FreeBlocks::erase(Block& block) {
  block.node = tree_.extract(block.position);
}

// Most often what is left of a block, or what a freed one is joined with, is the greatest of its stream before and
// after: then nothing has to be searched and balanced.
bool FreeBlocks::keeps_its_place(const Block& block, char* address, size_t size) const {
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

void FreeBlocks::resize(Block& block, char* address, size_t size) {
  const bool stays = keeps_its_place(block, address, size);
  if (!stays) {
    erase(block);
  }
  block.address = address;
  block.size = size;
  if (!stays) {
    insert(block);
  }
}

}  // namespace openreg::runtime
