// SPDX-License-Identifier: BSD-3-Clause
#include "cache/free_blocks.h"

#include <utility>

namespace openreg::runtime {

void FreeBlocks::insert(Block& block) {
  block.position = block.node.empty() ? tree_.insert(&block).first : tree_.insert(std::move(block.node)).position;
}

void FreeBlocks::erase(Block& block) {
  block.node = tree_.extract(block.position);
}

void FreeBlocks::move(Block& block, char* address, size_t size) {
  erase(block);
  block.address = address;
  block.size = size;
  insert(block);
}

}  // namespace openreg::runtime
