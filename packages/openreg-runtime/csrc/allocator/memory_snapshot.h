// SPDX-License-Identifier: BSD-3-Clause
// Snapshots of the caching allocator of device memory: its segments, and the history of its events (source:
// torch.cuda.memory_snapshot()). They have the structures of c10/core/CachingDeviceAllocator.h.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The settings of a memory history.
struct HistoryOptions {
  bool trace = true;  // record a list of events; otherwise only the contexts of allocated blocks and segments
  // The events for which a context (a stack) is kept. `gather` makes the context on the thread that allocates or
  // releases. That thread holds no lock, so `gather` may acquire the GIL. If it is null, no context is kept.
  c10::CachingDeviceAllocator::RecordContext context = c10::CachingDeviceAllocator::RecordContext::ALL;
  c10::CachingDeviceAllocator::CreateContextFn gather = nullptr;
  size_t max_entries = 0;                                             // length of the list, which drops old entries
  bool clear = false;                                                 // drop the entries that exist at the start
  std::vector<c10::CachingDeviceAllocator::TraceEntry::Action> skip;  // actions that are not recorded
};

// The segments of one device and the recorded events of its caching allocator.
struct MemorySnapshot {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;  // by address, each with its blocks by address
  std::vector<c10::CachingDeviceAllocator::TraceEntry> trace;      // ordered from the oldest to the newest
};

// All functions are thread-safe. They throw c10::Error if the index is out of range, or inside a callback of
// observe_memory().

// Starts recording, or continues with other options.
OPENREG_RUNTIME_API void record_memory_history(c10::DeviceIndex index, const HistoryOptions& options);
// Stops recording and drops the list. Live allocations keep their contexts.
OPENREG_RUNTIME_API void stop_memory_history(c10::DeviceIndex index);

// Returns a snapshot: the segments of one private pool, or, for the id {0, 0}, of the default pool and all private
// pools, and the list of events. Adds an entry for the snapshot itself to the list. Calls HistoryOptions::gather, which
// may acquire the GIL.
OPENREG_RUNTIME_API MemorySnapshot memory_snapshot(c10::DeviceIndex index, c10::MempoolId_t id = {0, 0});

}  // namespace openreg::runtime
