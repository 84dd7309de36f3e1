// SPDX-License-Identifier: BSD-3-Clause
// The list of what one device's allocator did, and where: an observer of it.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "allocator/memory_snapshot.h"
#include "cache/device_caching_allocator.h"
#include "openreg/runtime/memory_observer.h"

namespace openreg::runtime {

using Context = std::shared_ptr<c10::GatheredContext>;

// memory_snapshot.h says what is recorded. Thread-safe.
class MemoryHistory {
 public:
  using RecordContext = c10::CachingDeviceAllocator::RecordContext;

  explicit MemoryHistory(c10::DeviceIndex index, DeviceCachingAllocator& cache) : index_(index), cache_(cache) {}

  void start(const HistoryOptions& options);
  void stop();
  MemorySnapshot snapshot(c10::MempoolId_t id);

  // Gathers the calling thread's context, if contexts are kept for `use` or more, for the events that the thread causes
  // in its life; of frees only for that of the block at `freed`, for others that complete by the way have their own.
  // Made before a call of the cache, without any lock, because gathering may take the GIL.
  class ContextGatherGuard {
   public:
    ContextGatherGuard(const MemoryHistory& history, RecordContext use, const void* freed = nullptr) {
      if (C10_UNLIKELY(history.keeps(use))) {
        gather(history, freed);
      }
    }
    ContextGatherGuard(const ContextGatherGuard&) = delete;
    ContextGatherGuard& operator=(const ContextGatherGuard&) = delete;
    ~ContextGatherGuard() {
      if (C10_UNLIKELY(gathered_ != nullptr)) {
        reset();
      }
    }

    struct Gathered {
      Context context;
      const void* freed;
      const Gathered* outer;
    };

   private:
    void gather(const MemoryHistory& history, const void* freed);
    void reset();

    std::unique_ptr<const Gathered> gathered_;  // apart, so that a call without a context writes one pointer
  };

 private:
  using TraceEntry = c10::CachingDeviceAllocator::TraceEntry;

  bool keeps(RecordContext use) const { return level_.load(std::memory_order_relaxed) >= use; }
  void observe(uint32_t kinds);

  // The rest is called by the cache or inside inspect(), with its lock held.
  void record(const MemoryEvent& event);
  void add(TraceEntry::Action action, size_t address, size_t size, int64_t stream, c10::MempoolId_t pool,
           const Context& context);
  std::vector<TraceEntry> entries() const;  // the oldest comes first
  c10::CachingDeviceAllocator::SegmentInfo describe(const Segment& segment) const;
  Context context_of(const void* address, const std::unordered_map<const void*, Context>& contexts) const;

  const c10::DeviceIndex index_;
  DeviceCachingAllocator& cache_;
  std::mutex control_;  // of start() and stop(), taken before the cache's lock
  std::atomic<RecordContext> level_{RecordContext::NEVER};
  std::atomic<c10::CachingDeviceAllocator::CreateContextFn> gather_{nullptr};
  bool tracing_ = false;
  size_t max_entries_ = 1;
  size_t oldest_ = 0;  // in a full list
  std::vector<TraceEntry> entries_;
  std::bitset<16> skipped_;  // by action
  // Where blocks in use and segments were allocated, by address; not those of which that is not known.
  std::unordered_map<const void*, Context> block_contexts_;
  std::unordered_map<const void*, Context> segment_contexts_;
};

}  // namespace openreg::runtime
