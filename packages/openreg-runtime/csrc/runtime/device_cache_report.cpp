// SPDX-License-Identifier: BSD-3-Clause
// What the caching allocator of one device tells: statistics, profiler reports, the out-of-memory message.
#include <c10/util/Exception.h>

#include "device_cache.h"
#include "openreg.h"
#include "openreg/runtime/device.h"
#include "size_class.h"
#include "stat_array.h"

namespace openreg::runtime {

namespace {

using c10::CachingAllocator::format_size;

// All statistics that are kept per size class.
template <class Function>
void for_each_stat(c10::CachingDeviceAllocator::DeviceStats& stats, Function function) {
  for (StatArray* array :
       {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split, &stats.allocated_bytes,
        &stats.reserved_bytes, &stats.active_bytes, &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (auto& stat : *array) {
      function(stat);
    }
  }
  function(stats.oversize_allocations);
  function(stats.oversize_segments);
  for (auto& [id, array] : stats.reserved_bytes_by_private_pools) {
    for (auto& stat : array) {
      function(stat);
    }
  }
}

}  // namespace

c10::CachingDeviceAllocator::DeviceStats DeviceCache::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  c10::CachingDeviceAllocator::DeviceStats stats = stats_;
  stats.max_split_size = static_cast<int64_t>(AllocatorConfig::max_split_size());  // -1 for no limit, as on CUDA
  return stats;
}

void DeviceCache::reset_accumulated_stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for_each_stat(stats_, [](auto& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = 0;
  stats_.num_ooms = 0;
  stats_.num_sync_all_streams = 0;
  stats_.num_device_alloc = 0;
  stats_.num_device_free = 0;
}

void DeviceCache::reset_peak_stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for_each_stat(stats_, [](auto& stat) { stat.reset_peak(); });
}

void DeviceCache::throw_out_of_memory(size_t requested, c10::StreamId stream, const Context& context) {
  size_t free = 0;
  size_t total = 0;
  {
    const CurrentDevice current(index_);
    orMemGetInfo(&free, &total);
  }
  trace_event(Action::OOM, free, requested, stream, context);
  const auto allocated = static_cast<size_t>(stats_.allocated_bytes[kAggregate].current);
  const auto reserved = static_cast<size_t>(stats_.reserved_bytes[kAggregate].current);
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(requested), allocated, reserved,
                                   c10::Device(kDeviceType, index_));
  std::string limits;
  if (memory_fraction() < 1) {
    limits += c10::str(" This process may hold ", format_size(limit()), ", ", memory_fraction(),
                       " of the capacity; torch.openreg.set_per_process_memory_fraction() with a larger number raises "
                       "the limit.");
  }
  if (is_capturing()) {
    limits +=
        " A capture is under way on the device, so that cached memory could not be given back: call "
        "torch.openreg.empty_cache() before the capture.";
  }
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "OpenReg out of memory. Tried to allocate ", format_size(requested),
      ". Device openreg:", static_cast<int>(index_), " has a total capacity of ", format_size(total), " of which ",
      format_size(free), " is free. Of the rest, ", format_size(allocated), " is allocated by tensors, and ",
      format_size(reserved - allocated), " is reserved by the caching allocator but unallocated.", limits,
      " Release tensors, use smaller batches, or give "
      "the device more memory: OPENREG_DEVICE_MEMORY sets its capacity before the process starts. If much is "
      "reserved but unallocated, it is fragmented: release tensors, then call torch.openreg.empty_cache().");
}

size_t DeviceCache::allocated_size(void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocated_.find(address);
  return found == allocated_.end() ? 0 : found->second->size;
}

void DeviceCache::report_to_profiler(void* address, int64_t size) const {
  c10::reportMemoryUsageToProfiler(address, size, static_cast<size_t>(stats_.allocated_bytes[kAggregate].current),
                                   static_cast<size_t>(stats_.reserved_bytes[kAggregate].current),
                                   c10::Device(kDeviceType, index_));
}

}  // namespace openreg::runtime
