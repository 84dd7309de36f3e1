// SPDX-License-Identifier: BSD-3-Clause
// The history of one device's caching allocator: a list of its events, such as allocations and frees, and the contexts
// in which they happened (source: torch.cuda.memory._record_memory_history()). A context is a stack of Python or C++
// calls.
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

// An observer that records the events of one device's caching allocator, as memory_snapshot.h describes. Thread-safe.
class MemoryHistory {
 public:
  using RecordContext = c10::CachingDeviceAllocator::RecordContext;

  explicit MemoryHistory(c10::DeviceIndex index, DeviceCachingAllocator& cache) : index_(index), cache_(cache) {}

  // Implements record_memory_history().
  void start(const HistoryOptions& options);
  // Implements stop_memory_history().
  void stop();
  // Implements memory_snapshot().
  MemorySnapshot snapshot(c10::MempoolId_t id);

  // A guard that gathers the calling thread's context, if the history keeps contexts for `use`. While the guard exists,
  // events that the thread causes get that context. Of the events that free a block, only those of the block at `freed`
  // get it. Frees of other blocks that complete in the same call get the context in which their block was allocated.
  // Create a guard before a call of the cache, without any lock, because gathering may acquire the GIL.
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

    // A gathered context and its block. `outer` is that of the thread's enclosing guard, or null.
    struct Gathered {
      Context context;
      const void* freed;
      const Gathered* outer;
    };

   private:
    void gather(const MemoryHistory& history, const void* freed);
    void reset();

    std::unique_ptr<const Gathered> gathered_;  // allocated, so that a guard without a context only sets one pointer
  };

 private:
  using TraceEntry = c10::CachingDeviceAllocator::TraceEntry;

  bool keeps(RecordContext use) const { return level_.load(std::memory_order_relaxed) >= use; }
  // Subscribes to the cache's events of these kinds, a mask of bits of memory_event_bit().
  void observe(uint32_t kinds);

  // The functions below require the lock of the cache. They run in its callbacks or inside inspect().
  void record(const MemoryEvent& event);
  void add(TraceEntry::Action action, size_t address, size_t size, int64_t stream, c10::MempoolId_t pool,
           const Context& context);
  std::vector<TraceEntry> entries() const;  // ordered from the oldest to the newest
  c10::CachingDeviceAllocator::SegmentInfo describe(const Segment& segment) const;
  Context context_of(const void* address, const std::unordered_map<const void*, Context>& contexts) const;

  const c10::DeviceIndex index_;
  DeviceCachingAllocator& cache_;
  std::mutex control_;  // serializes start() and stop(); locked before the cache's lock
  std::atomic<RecordContext> level_{RecordContext::NEVER};
  std::atomic<c10::CachingDeviceAllocator::CreateContextFn> gather_{nullptr};
  bool tracing_ = false;
  size_t max_entries_ = 1;
  size_t oldest_ = 0;  // index of the oldest entry; 0 until the list is full
  std::vector<TraceEntry> entries_;
  std::bitset<16> skipped_;  // actions that are not recorded
  // The contexts in which active blocks and segments were allocated, by address. Allocations without a context are not
  // contained.
  std::unordered_map<const void*, Context> block_contexts_;
  std::unordered_map<const void*, Context> segment_contexts_;
};

}  // namespace openreg::runtime
