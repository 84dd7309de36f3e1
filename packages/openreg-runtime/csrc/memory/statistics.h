// SPDX-License-Identifier: BSD-3-Clause
// What the allocator of one device counts, as torch.cuda.memory_stats() has it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "block.h"
#include "pools.h"

namespace openreg::runtime {

struct Counter {
  void increase(size_t amount) {
    current += static_cast<int64_t>(amount);
    peak = std::max(peak, current);
    allocated += static_cast<int64_t>(amount);
  }
  void decrease(size_t amount) {
    current -= static_cast<int64_t>(amount);
    freed += static_cast<int64_t>(amount);
  }
  void reset_accumulated() { allocated = freed = 0; }
  void reset_peak() { peak = current; }

  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;
};

// Of all pools, of those of small blocks and of those of large ones.
struct PoolCounters {
  void increase(const BlockPool& pool, size_t amount) {
    of[0].increase(amount);
    of[pool.is_small ? 1 : 2].increase(amount);
  }
  void decrease(const BlockPool& pool, size_t amount) {
    of[0].decrease(amount);
    of[pool.is_small ? 1 : 2].decrease(amount);
  }
  size_t current() const { return static_cast<size_t>(of[0].current); }

  std::array<Counter, 3> of;
};

// An observer that is always there, so it is called directly: what others are told contains its totals.
struct Statistics {
  void block_allocated(const Block& block) {
    const BlockPool& pool = *block.segment->pool;
    allocation.increase(pool, 1);
    allocated_bytes.increase(pool, block.size);
    requested_bytes.increase(pool, block.requested);
    active.increase(pool, 1);
    active_bytes.increase(pool, block.size);
    if (block.is_oversize) {
      oversize_allocations.increase(1);
    }
  }
  void free_requested(const Block& block) {
    const BlockPool& pool = *block.segment->pool;
    allocation.decrease(pool, 1);
    allocated_bytes.decrease(pool, block.size);
    requested_bytes.decrease(pool, block.requested);
    if (block.is_oversize) {
      oversize_allocations.decrease(1);
    }
  }
  void free_completed(const Block& block) {
    const BlockPool& pool = *block.segment->pool;
    active.decrease(pool, 1);
    active_bytes.decrease(pool, block.size);
  }
  // Free blocks that are only a part of their segment and so cannot be given back.
  void inactive_split_changed(const BlockPool& pool, int count, ptrdiff_t bytes) {
    change(inactive_split, pool, count);
    change(inactive_split_bytes, pool, bytes);
  }
  void segment_allocated(const Segment& added);
  void segment_released(const Segment& removed);

  void reset_accumulated();
  void reset_peak();

  PoolCounters allocation;
  PoolCounters segment;
  PoolCounters active;  // allocated, or freed and still used by other streams
  PoolCounters inactive_split;
  PoolCounters allocated_bytes;
  PoolCounters reserved_bytes;
  PoolCounters active_bytes;
  PoolCounters inactive_split_bytes;
  PoolCounters requested_bytes;
  std::map<PoolId, PoolCounters> reserved_bytes_by_private_pool;
  Counter oversize_allocations;
  Counter oversize_segments;
  int64_t alloc_retries = 0;
  int64_t out_of_memory = 0;
  int64_t device_waits = 0;
  int64_t driver_allocations = 0;
  int64_t driver_releases = 0;

 private:
  static void change(PoolCounters& counters, const BlockPool& pool, ptrdiff_t amount) {
    if (amount > 0) {
      counters.increase(pool, static_cast<size_t>(amount));
    } else if (amount < 0) {
      counters.decrease(pool, static_cast<size_t>(-amount));
    }
  }
  template <class Function>
  void for_each(Function function);
};

}  // namespace openreg::runtime
