// SPDX-License-Identifier: BSD-3-Clause
// Implements c10::DeviceAllocator by one DeviceCachingAllocator per device.
#include <c10/core/AllocatorConfig.h>
#include <c10/util/llvmMathExtras.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/device_allocators.h"
#include "allocator/poison.h"
#include "base/current_stream.h"
#include "base/enqueue.h"
#include "base/gpu_trace.h"
#include "base/observer_callback.h"
#include "base/tool_hooks.h"
#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

using AllocatorConfig = c10::CachingAllocator::AcceleratorAllocatorConfig;
using RecordContext = c10::CachingDeviceAllocator::RecordContext;

c10::DeviceIndex owner_of(const void* address) {
  orPointerAttributes attributes{};
  OPENREG_CHECK(orPointerGetAttributes(&attributes, address));
  return static_cast<c10::DeviceIndex>(attributes.device);
}

// Returns the number of divisions for a size. c10's first interval also applies to all smaller sizes, so most requests
// need no call of c10.
size_t divisions_for(size_t size) {
  constexpr size_t kSecondInterval = size_t{2} << 20;
  static const std::vector<size_t>& divisions = AllocatorConfig::roundup_power2_divisions();  // c10 updates it in place
  return size < kSecondInterval ? divisions.front() : AllocatorConfig::roundup_power2_divisions(size);
}

// Returns the size of the block for a request and its red zone, all in bytes. The setting roundup_power2_divisions is a
// number of steps between two powers of 2. Sizes are rounded up to a step, so that a block fits slightly different
// requests.
size_t block_size_for(size_t requested, size_t red_zone) {
  // Rounding up a size above kLargest could overflow. No device has that much memory, so the request fails anyway.
  constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 2;
  const size_t size = std::min(requested, kLargest) + red_zone;
  const size_t divisions = divisions_for(size);
  if (divisions > 1 && size > kMinBlock * divisions) {
    return round_up(size, c10::llvm::PowerOf2Floor(size) / divisions);
  }
  return round_up(std::max(size, kMinBlock), kMinBlock);
}

// Returns max_split_size for a block. Small blocks have no limit, because c10 accepts no limit below their segments'
// size.
size_t max_split_size_for(size_t block_size) {
  return is_small(block_size) ? kUnlimited : AllocatorConfig::max_split_size();
}

[[noreturn]] void throw_out_of_memory(c10::DeviceIndex index, size_t requested, const OomReport& failure) {
  using c10::CachingAllocator::format_size;
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(requested), failure.allocated, failure.reserved,
                                   c10::Device(kDeviceType, index));
  std::string limits;
  if (failure.limit != kUnlimited) {
    limits += c10::str(" This process may hold ", format_size(failure.limit), ", ", memory_fraction(index),
                       " of the capacity; torch.openreg.set_per_process_memory_fraction() with a larger number raises "
                       "the limit.");
  }
  if (failure.is_capturing) {
    limits +=
        " A capture is under way on the device, so that cached memory could not be given back: call "
        "torch.openreg.empty_cache() before the capture.";
  }
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "OpenReg out of memory. Tried to allocate ", format_size(requested),
      ". Device openreg:", static_cast<int>(index), " has a total capacity of ", format_size(failure.device.total),
      " of which ", format_size(failure.device.free), " is free. Of the rest, ", format_size(failure.allocated),
      " is allocated by tensors, and ", format_size(failure.reserved - failure.allocated),
      " is reserved by the caching allocator but unallocated.", limits,
      " Release tensors, use smaller batches, or give "
      "the device more memory: OPENREG_DEVICE_MEMORY sets its capacity before the process starts. If much is "
      "reserved but unallocated, it is fragmented: release tensors, then call torch.openreg.empty_cache().");
}

// Returns the device of the calling thread's last allocation or release. It is the first candidate for the owner of the
// next released address, because a query of the driver takes its lock.
c10::DeviceIndex& last_device() {
  thread_local c10::DeviceIndex index = 0;
  return index;
}

void* allocate_on(c10::DeviceIndex index, size_t size) {
  refuse_inside_callback("the caching allocator's allocate");
  DeviceAllocatorState& device = allocator_state(index);
  if (C10_UNLIKELY(MemoryObserverList::exist())) {
    call_before_memory();
  }
  const MemoryHistory::ContextGatherGuard gathering(device.history, RecordContext::STATE);
  const size_t red_zone = tool_hook_state().red_zone.load(std::memory_order_acquire);
  const size_t block_size = block_size_for(size, red_zone);
  const AllocParams request{size, block_size, current_stream_id(index), max_split_size_for(block_size)};
  OomReport failure;
  void* address = device.cache.allocate(request, failure);
  if (C10_UNLIKELY(address == nullptr)) {
    throw_out_of_memory(index, size, failure);
  }
  if (C10_UNLIKELY(red_zone != 0)) {
    auto* const fills = tool_hook_state().fills_red_zone.load(std::memory_order_acquire);
    if (fills != nullptr && fills(address)) {
      const GilRelease release;  // because the fill blocks while the stream's queue is full
      fill_red_zone(static_cast<char*>(address) + size, red_zone, current_stream(index));
    }
  }
  last_device() = index;
  trace_gpu([&](const auto& python) { python.trace_gpu_memory_allocation(kDeviceType, trace_id(address)); });
  return address;
}

bool release_on(c10::DeviceIndex index, void* address) {
  DeviceAllocatorState& device = allocator_state(index);
  if (C10_UNLIKELY(MemoryObserverList::exist())) {
    call_before_memory();
  }
  const MemoryHistory::ContextGatherGuard gathering(device.history, RecordContext::ALL, address);
  if (!device.cache.release(address)) {
    return false;
  }
  trace_gpu([&](const auto& python) { python.trace_gpu_memory_deallocation(kDeviceType, trace_id(address)); });
  return true;
}

c10::CachingAllocator::Stat to_stat(const Counter& counter) {
  c10::CachingAllocator::Stat stat;
  stat.current = counter.current;
  stat.peak = counter.peak;
  stat.allocated = counter.allocated;
  stat.freed = counter.freed();
  return stat;
}

c10::CachingAllocator::StatArray to_stats(const PoolCounters& counters) {
  using c10::CachingAllocator::StatType;
  c10::CachingAllocator::StatArray stats;
  stats[static_cast<size_t>(StatType::AGGREGATE)] = to_stat(counters.all());
  stats[static_cast<size_t>(StatType::SMALL_POOL)] = to_stat(counters.small());
  stats[static_cast<size_t>(StatType::LARGE_POOL)] = to_stat(counters.large());
  return stats;
}

c10::CachingDeviceAllocator::DeviceStats to_device_stats(const Statistics& statistics) {
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocation = to_stats(statistics.allocation);
  stats.segment = to_stats(statistics.segment);
  stats.active = to_stats(statistics.active);
  stats.inactive_split = to_stats(statistics.inactive_split);
  stats.allocated_bytes = to_stats(statistics.allocated_bytes);
  stats.reserved_bytes = to_stats(statistics.reserved_bytes);
  stats.active_bytes = to_stats(statistics.active_bytes);
  stats.inactive_split_bytes = to_stats(statistics.inactive_split_bytes);
  stats.requested_bytes = to_stats(statistics.requested_bytes);
  for (const auto& [id, counters] : statistics.reserved_bytes_by_private_pool) {
    stats.reserved_bytes_by_private_pools[id] = to_stats(counters);
  }
  stats.oversize_allocations = to_stat(statistics.oversize_allocations);
  stats.oversize_segments = to_stat(statistics.oversize_segments);
  stats.num_alloc_retries = statistics.alloc_retries;
  stats.num_ooms = statistics.out_of_memory;
  stats.num_sync_all_streams = statistics.device_waits;
  stats.num_device_alloc = statistics.driver_allocations;
  stats.num_device_free = statistics.driver_releases;
  stats.max_split_size = static_cast<int64_t>(AllocatorConfig::max_split_size());  // -1 for no limit, as on CUDA
  return stats;
}

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    ensure_initialized();
    const c10::DeviceIndex index = current_device();
    void* address = size == 0 ? nullptr : allocate_on(index, size);
    return {address, address, &release, c10::Device(kDeviceType, index)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  // Enqueues the copy on the current stream, which orders it with other tasks on the two ranges.
  void copy_data(void* destination, const void* source, size_t count) const override {
    const orStream_t stream = native_handle(current_stream());
    OPENREG_CHECK(
        enqueue_without_gil([&] { return orMemcpyAsync(destination, source, count, orMemcpyDeviceToDevice, stream); }));
  }

  bool initialized() override { return is_initialized(); }

  void emptyCache(c10::MempoolId_t id) override {
    for (c10::DeviceIndex index = 0; is_initialized() && index < device_count(); ++index) {
      DeviceAllocatorState& device = checked_device(index, "emptyCache");
      const MemoryHistory::ContextGatherGuard gathering(device.history, RecordContext::ALL);
      bool is_emptied = false;
      {
        const GilRelease release;  // because the driver frees memory when the device's tasks are complete
        is_emptied = device.cache.empty(id);
      }
      TORCH_CHECK(is_emptied, "empty_cache: the cache of openreg:", static_cast<int>(index),
                  " cannot be emptied while a capture is under way on that device, because that waits for all its "
                  "work; call torch.openreg.empty_cache() before the capture begins or after it has ended");
    }
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    // Memory of from_blob() has another deleter and its own owner.
    if (data.get() != nullptr && data.get_deleter() == &release) {
      const StreamKey key{stream.device_index(), stream.id()};
      checked_device(owner_of(data.get()), "recordStream").cache.record_stream(data.get(), key);
    }
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    checked_device(index, "getDeviceStats").cache.inspect([&](const auto&, const Statistics& statistics) {
      stats = to_device_stats(statistics);
    });
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex index) override {
    checked_device(index, "resetAccumulatedStats").cache.inspect([](const auto&, Statistics& statistics) {
      statistics.reset_accumulated();
    });
  }

  void resetPeakStats(c10::DeviceIndex index) override {
    checked_device(index, "resetPeakStats").cache.inspect([](const auto&, Statistics& statistics) {
      statistics.reset_peak();
    });
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    check_device_index(index);
    const CurrentDeviceGuard current(index);
    size_t free = 0;
    size_t total = 0;
    OPENREG_CHECK(orMemGetInfo(&free, &total));
    return {free, total};
  }

  static CachingAllocator& instance() {
    static auto* const allocator = new CachingAllocator();  // outlives every tensor
    return *allocator;
  }

 private:
  // A deleter must not throw, and must not lock a mutex that a forked child may have inherited locked.
  static void release(void* address) {
    if (address == nullptr || orDriverIsUsable() == 0) {
      return;
    }
    try {
      refuse_inside_callback("the caching allocator's release");
      std::optional<GilRelease> without_gil;
      if (C10_UNLIKELY(poison_is_on())) {
        without_gil.emplace();  // because the fill with poison blocks while the stream's queue is full
      }
      // The query of the owner takes the driver's lock, so the last device is tried first.
      if (C10_UNLIKELY(!release_on(last_device(), address))) {
        const c10::DeviceIndex owner = owner_of(address);
        if (owner >= 0) {
          last_device() = owner;
          release_on(owner, address);
        }
      }
    } catch (const std::exception& error) {
      TORCH_WARN("releasing openreg memory failed: ", error.what());
    }
  }
};

REGISTER_ALLOCATOR(kDeviceType, &CachingAllocator::instance())

}  // namespace

DeviceAllocatorState::DeviceAllocatorState(c10::DeviceIndex index)
    : provider(index), cache(index, provider), history(index, cache) {}

DeviceAllocatorState& allocator_state(c10::DeviceIndex index) {
  using Devices = std::array<std::unique_ptr<DeviceAllocatorState>, OPENREG_MAX_DEVICES>;
  static auto* const devices = [] {
    auto made = std::make_unique<Devices>();
    for (size_t i = 0; i < made->size(); ++i) {
      (*made)[i] = std::make_unique<DeviceAllocatorState>(static_cast<c10::DeviceIndex>(i));
    }
    return made.release();  // outlives every tensor
  }();
  return *(*devices)[static_cast<size_t>(index)];
}

DeviceAllocatorState& checked_device(c10::DeviceIndex index, const char* function) {
  refuse_inside_callback(function);
  check_device_index(index);
  return allocator_state(index);
}

c10::DeviceAllocator& device_allocator() {
  return CachingAllocator::instance();
}

double memory_fraction(c10::DeviceIndex index) {
  check_device_index(index);
  return allocator_state(index).provider.memory_fraction();
}

void set_memory_fraction(c10::DeviceIndex index, double fraction) {
  check_device_index(index);
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1,
                    "set_per_process_memory_fraction: expected a number from 0 to 1 for openreg:",
                    static_cast<int>(index), ", but got ", fraction);
  allocator_state(index).provider.set_memory_fraction(fraction);
}

size_t allocated_size(void* address) {
  const c10::DeviceIndex owner = owner_of(address);
  return owner < 0 ? 0 : checked_device(owner, "allocated_size").cache.allocated_size(address);
}

}  // namespace openreg::runtime
