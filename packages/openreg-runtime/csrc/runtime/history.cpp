// SPDX-License-Identifier: BSD-3-Clause
#include "history.h"

#include <algorithm>

namespace openreg::runtime {

using c10::CachingDeviceAllocator::TraceEntry;

void History::start(const HistoryOptions& options) {
  const size_t max_entries = std::max<size_t>(options.max_entries, 1);
  if (options.clear || !options.trace) {
    entries_.clear();
  }
  // A list of another length starts with the newest entries of the old one.
  std::vector<TraceEntry> kept = entries();
  if (kept.size() > max_entries) {
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(max_entries));
  }
  entries_ = std::move(kept);
  oldest_ = 0;
  max_entries_ = max_entries;
  skipped_.reset();
  for (const Action action : options.skip) {
    skipped_.set(static_cast<size_t>(action));
  }
  tracing_ = options.trace;
  gather_ = options.gather;
  level_ = options.gather == nullptr ? RecordContext::NEVER : options.context;
}

void History::stop() {
  level_ = RecordContext::NEVER;
  tracing_ = false;
  entries_.clear();
  oldest_ = 0;
}

Context History::gather(RecordContext use) const {
  if (C10_LIKELY(!keeps(use))) {
    return nullptr;
  }
  const auto gather = gather_.load(std::memory_order_relaxed);
  return gather == nullptr ? nullptr : gather();
}

void History::add(TraceEntry entry) {
  if (skipped_.test(static_cast<size_t>(entry.action_))) {
    return;
  }
  if (entries_.size() < max_entries_) {
    entries_.push_back(std::move(entry));
    return;
  }
  entries_[oldest_] = std::move(entry);
  oldest_ = (oldest_ + 1) % max_entries_;
}

std::vector<TraceEntry> History::entries() const {
  std::vector<TraceEntry> result;
  result.reserve(entries_.size());
  const auto oldest = entries_.begin() + static_cast<std::ptrdiff_t>(oldest_);
  result.insert(result.end(), oldest, entries_.end());
  result.insert(result.end(), entries_.begin(), oldest);
  return result;
}

}  // namespace openreg::runtime
