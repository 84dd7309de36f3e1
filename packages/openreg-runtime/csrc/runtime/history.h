// SPDX-License-Identifier: BSD-3-Clause
// The list of what one device's cache did.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <bitset>
#include <memory>
#include <utility>
#include <vector>

#include "block.h"
#include "openreg/runtime/memory_history.h"

namespace openreg::runtime {

using Action = c10::CachingDeviceAllocator::TraceEntry::Action;
using Context = std::shared_ptr<c10::GatheredContext>;
using c10::CachingDeviceAllocator::RecordContext;

// Guarded by the cache's mutex, except gather().
class History {
 public:
  void start(const HistoryOptions& options);
  void stop();

  // The calling thread's context, if contexts are kept for `use` or more; else null. Called without any lock.
  Context gather(RecordContext use) const;
  bool keeps(RecordContext use) const { return level_.load(std::memory_order_relaxed) >= use; }
  bool is_tracing() const { return tracing_; }

  void add(c10::CachingDeviceAllocator::TraceEntry entry);
  std::vector<c10::CachingDeviceAllocator::TraceEntry> entries() const;  // the oldest comes first

 private:
  std::atomic<RecordContext> level_{RecordContext::NEVER};
  std::atomic<c10::CachingDeviceAllocator::CreateContextFn> gather_{nullptr};
  bool tracing_ = false;
  size_t max_entries_ = 1;
  size_t oldest_ = 0;  // in a full list
  std::vector<c10::CachingDeviceAllocator::TraceEntry> entries_;
  std::bitset<16> skipped_;  // by Action
};

}  // namespace openreg::runtime
