// SPDX-License-Identifier: BSD-3-Clause
// The steps, cheapest first, that make room for a request that no free block serves.
#pragma once

#include <functional>
#include <mutex>

#include "cache/allocator_reporter.h"
#include "cache/memory_provider.h"
#include "cache/pools.h"
#include "cache/segments.h"
#include "cache/size_policy.h"

namespace openreg::runtime {

// A retry, with references to the parts of the allocator that it uses. Guarded by the allocator's mutex.
struct OomRetry {
  MemoryProvider& provider;
  Pools& pools;
  Segments& segments;
  AllocatorReporter& reporter;
  std::function<void()> process_deferred_frees;
  std::function<Block*(const AllocParams&)> find_free;

  // Returns a free block that serves the request. Null if no step helps. Releases the mutex while it synchronizes the
  // device, so the state of the allocator may have changed when it returns.
  Block* find(const AllocParams& request, std::unique_lock<std::mutex>& lock);

 private:
  void wait(std::unique_lock<std::mutex>& lock);
  bool release_oversize(BlockPool& pool, const AllocParams& request);
  void release_garbage();
};

}  // namespace openreg::runtime
