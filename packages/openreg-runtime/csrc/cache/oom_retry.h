// SPDX-License-Identifier: BSD-3-Clause
// What is tried, the cheapest first, for a request that no free block serves.
#pragma once

#include <functional>
#include <mutex>

#include "cache/allocator_reporter.h"
#include "cache/memory_provider.h"
#include "cache/pools.h"
#include "cache/segments.h"
#include "cache/size_policy.h"

namespace openreg::runtime {

// The parts of the allocator that it works on, guarded by the allocator's lock.
struct OomRetry {
  MemoryProvider& provider;
  Pools& pools;
  Segments& segments;
  AllocatorReporter& reporter;
  std::function<void()> process_deferred_frees;
  std::function<Block*(const AllocParams&)> find_free;

  // A free block that serves the request, or null when nothing helps. The lock is released while the device is waited
  // for, so what was true before may not be true after it.
  Block* find(const AllocParams& request, std::unique_lock<std::mutex>& lock);

 private:
  void wait(std::unique_lock<std::mutex>& lock);
  bool release_oversize(BlockPool& pool, const AllocParams& request);
  void release_garbage();
};

}  // namespace openreg::runtime
