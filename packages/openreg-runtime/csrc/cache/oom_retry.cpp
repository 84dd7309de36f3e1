// SPDX-License-Identifier: BSD-3-Clause
#include "cache/oom_retry.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace openreg::runtime {

Block* OomRetry::find(const AllocParams& request, std::unique_lock<std::mutex>& lock) {
  if (segments.garbage() > 0 && !pools.is_capturing()) {
    wait(lock);
    release_garbage();
  }
  const auto add_segment = [&] { return segments.add(pools.pool_for(request.size, request.stream), request); };
  Block* block = add_segment();
  if (block != nullptr || pools.is_capturing()) {
    return block;  // a capture must not synchronize with the tasks that it records
  }
  ++reporter.statistics.alloc_retries;
  wait(lock);
  block = find_free(request);  // finds blocks that other streams used until wait() returned
  if (block == nullptr && !pools.is_capturing() &&
      release_oversize(pools.pool_for(request.size, request.stream), request)) {
    block = add_segment();
  }
  if (block == nullptr && !pools.is_capturing()) {
    pools.shrink(kDefaultPool, [&](BlockPool& pool) { segments.release_free(pool); });
    block = add_segment();
  }
  return block;
}

// Synchronizes the device, because a segment must not be released while a task may use it.
void OomRetry::wait(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  provider.synchronize();
  lock.lock();
  ++reporter.statistics.device_waits;
  process_deferred_frees();
}

// Releases free oversize segments of the request's stream (max_split_size_mb), which only requests of about their size
// can use. Releases one segment if it suffices for the request, and otherwise the largest ones until their sum
// suffices. Returns false if all of them together do not suffice.
bool OomRetry::release_oversize(BlockPool& pool, const AllocParams& request) {
  const size_t needed = std::max(request.size, request.max_split_size);
  if (needed == kUnlimited) {
    return false;
  }
  auto it = pool.free.lower_bound(BlockKey{request.stream, needed});
  if (it != pool.free.end() && (*it)->stream == request.stream) {
    if (!(*it)->is_whole_segment()) {
      return false;
    }
    segments.release(*(*it)->segment);
    return true;
  }
  std::vector<Segment*> largest;
  size_t found = 0;
  while (found < needed && it != pool.free.begin()) {
    const Block* block = *--it;
    if (block->stream != request.stream || block->size < request.max_split_size) {
      break;
    }
    if (block->is_whole_segment()) {
      found += block->size;
      largest.push_back(block->segment);
    }
  }
  for (Segment* segment : largest) {
    segments.release(*segment);
  }
  return found >= needed;
}

// Releases free segments of the default pool of large blocks until the reserved bytes do not exceed the threshold
// (garbage_collection_threshold). Begins with those that have been unused for the longest time.
void OomRetry::release_garbage() {
  std::vector<const Block*> unused;
  std::copy_if(pools.large().free.begin(), pools.large().free.end(), std::back_inserter(unused),
               [](const Block* block) { return block->is_whole_segment(); });
  std::sort(unused.begin(), unused.end(), [](const Block* a, const Block* b) { return a->freed_at < b->freed_at; });
  for (const Block* block : unused) {
    if (segments.garbage() == 0) {
      return;
    }
    segments.release(*block->segment);
  }
}

}  // namespace openreg::runtime
