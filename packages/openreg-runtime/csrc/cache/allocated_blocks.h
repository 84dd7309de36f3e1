// SPDX-License-Identifier: BSD-3-Clause
// The index of a device's allocated blocks by address, by which the caching allocator finds a block when it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/block.h"

namespace openreg::runtime {

// A hash table of blocks. The blocks of a bucket are linked through Block::next_in_bucket, so that take() never
// allocates memory, and insert() does only when the table grows. Not thread-safe.
class AllocatedBlocks {
 public:
  AllocatedBlocks() : buckets_(kFirstBuckets) {}

  // Adds an allocated block, which must not be in the table.
  void insert(Block& block) {
    if (count_ == buckets_.size()) {
      grow();
    }
    Block*& head = buckets_[bucket_of(block.address)];
    block.next_in_bucket = head;
    head = &block;
    ++count_;
  }

  // Returns the block that begins at `address`, or null if there is none.
  Block* find(const void* address) const {
    Block* block = buckets_[bucket_of(address)];
    while (block != nullptr && block->address != address) {
      block = block->next_in_bucket;
    }
    return block;
  }

  // Same as `find()`, except that it also removes the block.
  Block* take(const void* address) {
    Block** link = &buckets_[bucket_of(address)];
    while (*link != nullptr && (*link)->address != address) {
      link = &(*link)->next_in_bucket;
    }
    Block* block = *link;
    if (block != nullptr) {
      *link = block->next_in_bucket;
      --count_;
    }
    return block;
  }

  size_t size() const { return count_; }

 private:
  static constexpr size_t kFirstBuckets = 1024;
  static constexpr int kAlignment = 9;  // addresses of blocks are multiples of 512 bytes

  // Multiplies by the golden ratio (Fibonacci hashing), so that addresses at regular distances do not collide.
  size_t bucket_of(const void* address) const {
    const uint64_t number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address)) >> kAlignment;
    return static_cast<size_t>((number * 0x9E3779B97F4A7C15u) >> 32) & (buckets_.size() - 1);
  }

  void grow() {
    std::vector<Block*> old(buckets_.size() * 2);
    old.swap(buckets_);
    for (Block* block : old) {
      while (block != nullptr) {
        Block* const next = block->next_in_bucket;
        Block*& head = buckets_[bucket_of(block->address)];
        block->next_in_bucket = head;
        head = block;
        block = next;
      }
    }
  }

  std::vector<Block*> buckets_;  // heads of the lists; their number is a power of 2
  size_t count_ = 0;
};

}  // namespace openreg::runtime
