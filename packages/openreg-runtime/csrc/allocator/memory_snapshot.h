// SPDX-License-Identifier: BSD-3-Clause
// What the allocator of device memory did and holds, in the structures of c10/core/CachingDeviceAllocator.h.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

struct HistoryOptions {
  bool trace = true;  // keep a list of what the allocator does; otherwise only the contexts of live allocations
  // For what a context (a stack) is kept. `gather` makes it; called by the thread that allocates or releases, before
  // any lock is taken, so that it may take the GIL.
  c10::CachingDeviceAllocator::RecordContext context = c10::CachingDeviceAllocator::RecordContext::ALL;
  c10::CachingDeviceAllocator::CreateContextFn gather = nullptr;
  size_t max_entries = 0;                                             // the oldest are dropped
  bool clear = false;                                                 // drop what was recorded before
  std::vector<c10::CachingDeviceAllocator::TraceEntry::Action> skip;  // what is left out of the list
};

struct MemorySnapshot {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;  // by address, each with its blocks by address
  std::vector<c10::CachingDeviceAllocator::TraceEntry> trace;      // the oldest comes first
};

// Starts to record, or goes on with other options.
OPENREG_RUNTIME_API void record_memory_history(c10::DeviceIndex index, const HistoryOptions& options);
// Stops recording and drops the list. Live allocations keep their contexts.
OPENREG_RUNTIME_API void stop_memory_history(c10::DeviceIndex index);

// The segments of one private pool, or, for {0, 0}, of the ordinary cache and all pools. The snapshot itself becomes an
// entry of the list.
OPENREG_RUNTIME_API MemorySnapshot memory_snapshot(c10::DeviceIndex index, c10::MempoolId_t id = {0, 0});

}  // namespace openreg::runtime
