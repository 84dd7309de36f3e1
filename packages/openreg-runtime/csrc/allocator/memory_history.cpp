// SPDX-License-Identifier: BSD-3-Clause
#include "allocator/memory_history.h"

#include <c10/util/ApproximateClock.h>

#include <algorithm>
#include <utility>

#include "allocator/device_allocators.h"
#include "openreg/runtime/device.h"

namespace openreg::runtime {

namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::CachingDeviceAllocator::TraceEntry;
using Action = TraceEntry::Action;

constexpr uint64_t kSubscription = 0;  // not an id of observe_memory(), which counts from 1

// Returns the context of the calling thread's innermost ContextGatherGuard, or null.
const MemoryHistory::ContextGatherGuard::Gathered*& current() {
  thread_local const MemoryHistory::ContextGatherGuard::Gathered* gathered = nullptr;
  return gathered;
}

Context current_context() {
  return current() == nullptr ? nullptr : current()->context;
}

Context current_context_of_free(const void* address) {
  const bool known = current() != nullptr && current()->freed == address;
  return known ? current()->context : nullptr;
}

void* stream_address(int64_t stream) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(stream));
}

BlockInfo describe(const Block& block) {
  BlockInfo info;
  info.size = block.size;
  info.allocated = block.is_allocated;
  info.active = !block.is_free();
  info.requested_size = info.active ? block.requested : 0;
  return info;
}

}  // namespace

void MemoryHistory::ContextGatherGuard::gather(const MemoryHistory& history, const void* freed) {
  const auto make = history.gather_.load(std::memory_order_relaxed);
  gathered_.reset(new Gathered{make == nullptr ? nullptr : make(), freed, current()});
  current() = gathered_.get();
}

void MemoryHistory::ContextGatherGuard::reset() {
  current() = gathered_->outer;
}

void MemoryHistory::start(const HistoryOptions& options) {
  const std::lock_guard<std::mutex> lock(control_);
  cache_.remove_observer(kSubscription);
  cache_.inspect([&](const auto&, const auto&) {
    const size_t max_entries = std::max<size_t>(options.max_entries, 1);
    if (options.clear || !options.trace) {
      entries_.clear();
      oldest_ = 0;
    }
    // The list keeps its newest entries if its maximum length changes.
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
  });
  observe(kAllMemoryEvents & ~memory_event_bit(MemoryEventKind::kStreamRecorded));
}

void MemoryHistory::stop() {
  const std::lock_guard<std::mutex> lock(control_);
  cache_.remove_observer(kSubscription);
  bool contexts = false;
  cache_.inspect([&](const auto&, const auto&) {
    level_ = RecordContext::NEVER;
    tracing_ = false;
    entries_.clear();
    oldest_ = 0;
    contexts = !block_contexts_.empty() || !segment_contexts_.empty();
  });
  if (contexts) {  // contexts are kept until their block or segment is released
    observe(memory_event_bit(MemoryEventKind::kFreeCompleted) | memory_event_bit(MemoryEventKind::kSegmentReleased));
  }
}

void MemoryHistory::observe(uint32_t kinds) {
  cache_.add_observer(kSubscription, kinds, [this](const MemoryEvent& event) { record(event); });
}

void MemoryHistory::record(const MemoryEvent& event) {
  const auto number = reinterpret_cast<size_t>(event.address);
  const auto add_entry = [&](Action action, size_t size, const Context& context) {
    add(action, number, size, event.stream, event.pool, context);
  };
  switch (event.kind) {
    case MemoryEventKind::kAllocated: {
      const Context context = current_context();
      add_entry(Action::ALLOC, event.requested, context);
      if (context != nullptr) {
        block_contexts_[event.address] = context;
      }
      break;
    }
    case MemoryEventKind::kFreeRequested:
    case MemoryEventKind::kFreeCompleted: {
      const bool completed = event.kind == MemoryEventKind::kFreeCompleted;
      const Context freed = current_context_of_free(event.address);
      const auto found = block_contexts_.find(event.address);
      const Context allocated = found == block_contexts_.end() ? nullptr : found->second;
      add_entry(completed ? Action::FREE_COMPLETED : Action::FREE_REQUESTED, event.requested,
                freed != nullptr ? freed : allocated);
      if (completed && found != block_contexts_.end()) {
        block_contexts_.erase(found);
      }
      break;
    }
    case MemoryEventKind::kSegmentAllocated:
      add_entry(Action::SEGMENT_ALLOC, event.size, current_context());
      if (const Context context = current_context()) {
        segment_contexts_[event.address] = context;
      }
      break;
    case MemoryEventKind::kSegmentReleased:
      add_entry(Action::SEGMENT_FREE, event.size, current_context());
      segment_contexts_.erase(event.address);
      break;
    case MemoryEventKind::kOutOfMemory:
      add(Action::OOM, event.free_bytes, event.requested, event.stream, event.pool, current_context());
      break;
    case MemoryEventKind::kStreamRecorded:
      break;
  }
}

void MemoryHistory::add(Action action, size_t address, size_t size, int64_t stream, c10::MempoolId_t pool,
                        const Context& context) {
  if (!tracing_ || skipped_.test(static_cast<size_t>(action))) {
    return;
  }
  TraceEntry entry{action,
                   index_,
                   address,
                   size,
                   stream_address(stream),
                   pool,
                   c10::getApproximateTime(),
                   keeps(RecordContext::ALLOC) ? context : nullptr};
  if (entries_.size() < max_entries_) {
    entries_.push_back(std::move(entry));
    return;
  }
  entries_[oldest_] = std::move(entry);
  oldest_ = (oldest_ + 1) % max_entries_;
}

std::vector<TraceEntry> MemoryHistory::entries() const {
  std::vector<TraceEntry> result;
  result.reserve(entries_.size());
  const auto oldest = entries_.begin() + static_cast<std::ptrdiff_t>(oldest_);
  result.insert(result.end(), oldest, entries_.end());
  result.insert(result.end(), entries_.begin(), oldest);
  return result;
}

Context MemoryHistory::context_of(const void* address, const std::unordered_map<const void*, Context>& contexts) const {
  const auto found = contexts.find(address);
  return found == contexts.end() ? nullptr : found->second;
}

SegmentInfo MemoryHistory::describe(const Segment& segment) const {
  SegmentInfo info;
  info.device = index_;
  info.address = reinterpret_cast<size_t>(segment.address);
  info.stream = stream_address(segment.first->stream);
  info.is_large = !segment.pool->is_small;
  info.owner_private_pool_id = segment.pool->id();
  info.context_when_allocated = context_of(segment.address, segment_contexts_);
  for (const Block* block = segment.first; block != nullptr; block = block->next) {
    BlockInfo& added = info.blocks.emplace_back(runtime::describe(*block));
    added.context_when_allocated = added.active ? context_of(block->address, block_contexts_) : nullptr;
    info.total_size += added.size;
    info.requested_size += added.allocated ? added.requested_size : 0;
    info.allocated_size += added.allocated ? added.size : 0;
    info.active_size += added.active ? added.size : 0;
  }
  return info;
}

MemorySnapshot MemoryHistory::snapshot(c10::MempoolId_t id) {
  const ContextGatherGuard gathering(*this, RecordContext::ALLOC);
  MemorySnapshot result;
  cache_.inspect([&](const DeviceCachingAllocator::SegmentMap& segments, const auto&) {
    add(Action::SNAPSHOT, 0, 0, 0, kDefaultPool, current_context());
    for (const auto& [address, segment] : segments) {
      if (id == kDefaultPool || id == segment->pool->id()) {
        result.segments.push_back(describe(*segment));
      }
    }
    result.trace = entries();
  });
  return result;
}

void record_memory_history(c10::DeviceIndex index, const HistoryOptions& options) {
  checked_device(index, "record_memory_history").history.start(options);
}

void stop_memory_history(c10::DeviceIndex index) {
  checked_device(index, "stop_memory_history").history.stop();
}

MemorySnapshot memory_snapshot(c10::DeviceIndex index, c10::MempoolId_t id) {
  return checked_device(index, "memory_snapshot").history.snapshot(id);
}

}  // namespace openreg::runtime
