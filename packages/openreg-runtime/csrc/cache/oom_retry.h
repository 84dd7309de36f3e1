// SPDX-License-Identifier: BSD-3-Clause
// The steps that the caching allocator takes, from the cheapest on, when no free block serves a request: a new segment,
// synchronization, the release of unused segments.
#pragma once

#include <functional>
#include <mutex>

#include "cache/allocator_reporter.h"
#include "cache/memory_provider.h"
#include "cache/pools.h"
#include "cache/segments.h"
#include "cache/size_policy.h"

namespace openreg::runtime {

// The object that takes these steps, with references to the parts of the allocator that it uses. Guarded by the
// allocator's mutex.
struct OomRetry {
  MemoryProvider& provider;
  Pools& pools;
  Segments& segments;
  AllocatorReporter& reporter;
  std::function<void()> process_deferred_frees;
  std::function<Block*(const AllocParams&)> find_free;

  // Returns a free block that serves the request, or null if no step helps. `lock` holds the mutex. The function
  // unlocks it while it synchronizes the device, so the state of the allocator may have changed when it returns.
  Block* find(const AllocParams& request, std::unique_lock<std::mutex>& lock);

 private:
  void wait(std::unique_lock<std::mutex>& lock);
  bool release_oversize(BlockPool& pool, const AllocParams& request);
  void release_garbage();
};

}  // namespace openreg::runtime
