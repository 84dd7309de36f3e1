// SPDX-License-Identifier: BSD-3-Clause
// What is tried, the cheapest first, for a request that no free block serves.
#pragma once

#include <functional>
#include <mutex>

#include "backend.h"
#include "pools.h"
#include "recorder.h"
#include "segments.h"
#include "size_policy.h"

namespace openreg::runtime {

// The parts of the allocator that it works on, guarded by the allocator's lock.
struct OomRetry {
  AllocatorBackend& backend;
  Pools& pools;
  Segments& segments;
  Recorder& recorder;
  std::function<void()> process_deferred_frees;
  std::function<Block*(const Request&)> find_free;

  // A free block that serves the request, or null when nothing helps. The lock is released while the device is waited
  // for, so what was true before may not be true after it.
  Block* find(const Request& request, std::unique_lock<std::mutex>& lock);

 private:
  void wait(std::unique_lock<std::mutex>& lock);
  bool release_oversize(BlockPool& pool, const Request& request);
  void release_garbage();
};

}  // namespace openreg::runtime
