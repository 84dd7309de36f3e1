// SPDX-License-Identifier: BSD-3-Clause
// Implements at::HostAllocator with PyTorch's own caching host allocator.
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "allocator/poison.h"
#include "base/tool_hooks.h"
#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/event.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

using PinnedBlock = at::HostBlock<c10::Stream>;

// The backend's part of PyTorch's caching host allocator: the driver's memory, and events that find out when a stream
// no longer uses a block.
struct PinnedAllocatorImpl final : at::CachingHostAllocatorImpl<c10::Stream, Event, PinnedBlock> {
 private:
  void allocate_host_memory(size_t size, void** address) override {
    const auto start = std::chrono::steady_clock::now();
    OPENREG_CHECK(orMallocHost(address, size));
    count_time(stats_.host_alloc_time, start);
  }
  void free_block(PinnedBlock* block) override {
    const auto start = std::chrono::steady_clock::now();
    OPENREG_WARN(orFreeHost(block->ptr_));
    count_time(stats_.host_free_time, start);
  }
  void count_time(c10::CachingAllocator::DurationStat& stat, std::chrono::steady_clock::time_point start) {
    using std::chrono::microseconds;
    const auto passed = std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
    const std::lock_guard<std::mutex> lock(stats_.timing_mutex_);
    stat.increase(passed.count());
  }
  void record_stream(std::optional<std::vector<Event>>& events, c10::Stream stream) override {
    Event event;
    event.record_for_release(stream);
    events->push_back(std::move(event));
  }
  bool query_event(Event& event) override { return event.query_for_release(); }
  c10::Stream get_current_stream() const override { return current_stream(); }
  bool stream_is_capturing(c10::Stream stream) const override { return is_capturing(stream); }
};

void release_block(void* block);

struct PinnedAllocator final : at::CachingHostAllocatorInterface<PinnedAllocatorImpl, &release_block> {
  at::DataPtr allocate(size_t size) override {
    ensure_initialized();  // throws in a forked child, which inherits cached blocks but must not use them
    at::DataPtr memory = CachingHostAllocatorInterface::allocate(size);
    if (C10_UNLIKELY(poison_is_on()) && size != 0) {
      std::memset(memory.get(), kPoison, size);  // at once: the host may read it before any task of the device
    }
    if (auto* const hook = tool_hook_state().pinned.load(std::memory_order_acquire); C10_UNLIKELY(hook)) {
      hook(memory.get(), size);
    }
    return memory;
  }
};

PinnedAllocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator();  // outlives every tensor
  return *allocator;
}

void release_block(void* block) {
  if (orDriverIsUsable() != 0) {
    if (auto* const hook = tool_hook_state().pinned.load(std::memory_order_acquire); C10_UNLIKELY(hook)) {
      hook(static_cast<PinnedBlock*>(block)->ptr_, 0);
    }
    pinned_allocator().free(block);
  }
}

REGISTER_HOST_ALLOCATOR(kDeviceType, &pinned_allocator())

}  // namespace

at::HostAllocator& host_allocator() {
  return pinned_allocator();
}

bool is_pinned(const void* address) noexcept {
  orPointerAttributes attributes{};
  return is_initialized() && orPointerGetAttributes(&attributes, address) == orSuccess &&
         attributes.type == orMemoryTypeHost;
}

}  // namespace openreg::runtime
