// SPDX-License-Identifier: BSD-3-Clause
#include "cache/statistics.h"

namespace openreg::runtime {

void Statistics::segment_allocated(const Segment& added) {
  const BlockPool& pool = *added.pool;
  ++driver_allocations;
  segment.increase(pool, 1);
  reserved_bytes.increase(pool, added.size);
  if (pool.owner != nullptr) {
    reserved_bytes_by_private_pool[pool.id()].increase(pool, added.size);
  }
  if (added.is_oversize) {
    oversize_segments.increase(1);
  }
}

void Statistics::segment_released(const Segment& removed) {
  const BlockPool& pool = *removed.pool;
  ++driver_releases;
  segment.decrease(pool, 1);
  reserved_bytes.decrease(pool, removed.size);
  if (pool.owner != nullptr) {
    reserved_bytes_by_private_pool[pool.id()].decrease(pool, removed.size);
  }
  if (removed.is_oversize) {
    oversize_segments.decrease(1);
  }
}

template <class Function>
void Statistics::for_each(Function function) {
  for (PoolCounters* counters : {&allocation, &segment, &active, &inactive_split, &allocated_bytes, &reserved_bytes,
                                 &active_bytes, &inactive_split_bytes, &requested_bytes}) {
    function(*counters);
  }
  for (auto& [id, counters] : reserved_bytes_by_private_pool) {
    function(counters);
  }
  function(oversize_allocations);
  function(oversize_segments);
}

void Statistics::reset_accumulated() {
  for_each([](auto& counter) { counter.reset_accumulated(); });
  alloc_retries = 0;
  out_of_memory = 0;
  device_waits = 0;
  driver_allocations = 0;
  driver_releases = 0;
}

void Statistics::reset_peak() {
  for_each([](auto& counter) { counter.reset_peak(); });
}

}  // namespace openreg::runtime
