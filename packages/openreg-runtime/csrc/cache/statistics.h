// SPDX-License-Identifier: BSD-3-Clause
// The statistics of one device's caching allocator, as torch.cuda.memory_stats() reports them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "cache/block.h"
#include "cache/pools.h"

namespace openreg::runtime {

// A counter of one statistic: its current value, its peak, and the sums of all increases and decreases. It computes the
// sum of decreases from the other members, so that a release costs only one subtraction.
struct Counter {
  void increase(size_t amount) {
    current += static_cast<int64_t>(amount);
    allocated += static_cast<int64_t>(amount);
    if (current > peak) {
      peak = current;
    }
  }
  void decrease(size_t amount) { current -= static_cast<int64_t>(amount); }
  int64_t freed() const { return before + allocated - current; }
  void reset_accumulated() {
    allocated = 0;
    before = current;
  }
  void reset_peak() { peak = current; }

  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;  // sum of increases since the last reset
  int64_t before = 0;     // value of `current` at the last reset
};

// The counters of one statistic for pools of large and of small blocks, and the peak of their sum. all() computes the
// other totals.
struct PoolCounters {
  void increase(const BlockPool& pool, size_t amount) {
    of[pool.is_small].increase(amount);
    const int64_t sum = of[0].current + of[1].current;
    if (sum > peak) {
      peak = sum;
    }
  }
  void decrease(const BlockPool& pool, size_t amount) { of[pool.is_small].decrease(amount); }
  const Counter& large() const { return of[0]; }
  const Counter& small() const { return of[1]; }
  Counter all() const {
    return {of[0].current + of[1].current, peak, of[0].allocated + of[1].allocated, of[0].before + of[1].before};
  }
  size_t current() const { return static_cast<size_t>(of[0].current + of[1].current); }
  void reset_accumulated() {
    of[0].reset_accumulated();
    of[1].reset_accumulated();
  }
  void reset_peak() {
    of[0].reset_peak();
    of[1].reset_peak();
    peak = of[0].current + of[1].current;
  }

  std::array<Counter, 2> of;  // large, small
  int64_t peak = 0;
};

// All statistics of one allocator. AllocatorReporter updates them before it calls observers, because events contain
// totals. Guarded by the allocator's mutex. The members of type PoolCounters have the names of the keys of
// torch.cuda.memory_stats(); "allocation", "segment", "active" and "inactive_split" count blocks or segments.
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
  // Adds to the number and bytes of inactive splits: free blocks that are only a part of their segment and so cannot be
  // released to the driver.
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
  int64_t alloc_retries = 0;       // key num_alloc_retries
  int64_t out_of_memory = 0;       // key num_ooms
  int64_t device_waits = 0;        // key num_sync_all_streams
  int64_t driver_allocations = 0;  // key num_device_alloc
  int64_t driver_releases = 0;     // key num_device_free

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
