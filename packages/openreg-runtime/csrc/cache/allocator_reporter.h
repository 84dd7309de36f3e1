// SPDX-License-Identifier: BSD-3-Clause
// Reports events of one device's caching allocator to its statistics, to PyTorch's profiler and to the observers of
// observe_memory().
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/block.h"
#include "cache/memory_observers.h"
#include "cache/memory_provider.h"
#include "cache/statistics.h"

namespace openreg::runtime {

// The reporter of one allocator. All parts of the allocator report events through it: each function stands for one kind
// of event. Guarded by the allocator's mutex. While there are no observers, a function costs one comparison in addition
// to its counters.
class AllocatorReporter {
 public:
  AllocatorReporter(int device, MemoryProvider& provider) : device_(device), provider_(provider) {}

  void block_allocated(const Block& block) {
    statistics.block_allocated(block);
    report(block, static_cast<int64_t>(block.size));
    notify(MemoryEventKind::kAllocated, block);
  }
  void free_requested(const Block& block) {
    statistics.free_requested(block);
    report(block, -static_cast<int64_t>(block.size));
    notify(MemoryEventKind::kFreeRequested, block);
  }
  void free_completed(const Block& block) {
    statistics.free_completed(block);
    notify(MemoryEventKind::kFreeCompleted, block);
  }
  void stream_recorded(const Block& block, StreamKey other) {
    if (observers.want(MemoryEventKind::kStreamRecorded)) {
      report_block(MemoryEventKind::kStreamRecorded, block, other);
    }
  }
  void segment_allocated(const Segment& segment) {
    statistics.segment_allocated(segment);
    notify(MemoryEventKind::kSegmentAllocated, segment);
  }
  void segment_released(const Segment& segment) {
    statistics.segment_released(segment);
    notify(MemoryEventKind::kSegmentReleased, segment);
  }
  // Reports a failed allocation. `free` is the free memory of the device, in bytes.
  void out_of_memory(const AllocParams& request, size_t free);

  Statistics statistics;
  MemoryObserverList observers;

 private:
  void report(const Block& block, int64_t change) {
    provider_.report(block.address, change, statistics.allocated_bytes.current(), statistics.reserved_bytes.current());
  }
  void notify(MemoryEventKind kind, const Block& block) {
    if (observers.want(kind)) {
      report_block(kind, block, {});
    }
  }
  void notify(MemoryEventKind kind, const Segment& segment) {
    if (observers.want(kind)) {
      report_segment(kind, segment);
    }
  }
  MemoryEvent make_event(MemoryEventKind kind) const;
  void report_block(MemoryEventKind kind, const Block& block, StreamKey other);
  void report_segment(MemoryEventKind kind, const Segment& segment);

  const int device_;
  MemoryProvider& provider_;
};

}  // namespace openreg::runtime
