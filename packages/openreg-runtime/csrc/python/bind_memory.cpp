// SPDX-License-Identifier: BSD-3-Clause
// Bindings of memory for which PyTorch has no device-agnostic function: host statistics, limits, raw allocations.
#include <torch/csrc/utils/pybind.h>

#include "openreg/runtime/allocator.h"
#include "openreg/runtime/stream.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

py::dict duration_dict(const c10::CachingAllocator::DurationStat& stat) {
  py::dict result;
  result["total"] = stat.total;
  result["max"] = stat.max;
  result["min"] = stat.min;
  result["count"] = stat.count;
  result["avg"] = stat.count == 0 ? 0 : stat.total / stat.count;
  return result;
}

py::dict host_memory_stats() {
  const at::HostStats stats = host_allocator().get_stats();
  py::dict result;
  result["allocations"] = stat_dict(stats.allocations);
  result["active_requests"] = stat_dict(stats.active_requests);
  result["active_bytes"] = stat_dict(stats.active_bytes);
  result["allocated_bytes"] = stat_dict(stats.allocated_bytes);
  result["num_host_alloc"] = stats.num_host_alloc;
  result["num_host_free"] = stats.num_host_free;
  result["host_alloc_time"] = duration_dict(stats.host_alloc_time);
  result["host_free_time"] = duration_dict(stats.host_free_time);
  return result;
}

// A guard that makes a stream current and restores the previous one in its destructor.
class CurrentStreamGuard {
 public:
  explicit CurrentStreamGuard(c10::Stream stream) : previous_(exchange_stream(stream)) {}
  CurrentStreamGuard(const CurrentStreamGuard&) = delete;
  CurrentStreamGuard& operator=(const CurrentStreamGuard&) = delete;
  ~CurrentStreamGuard() { exchange_stream(previous_); }

 private:
  c10::Stream previous_;
};

uintptr_t raw_allocate(size_t size, int64_t index, c10::StreamId stream) {
  const c10::Device device(kDeviceType, to_device_index(index));
  const CurrentDeviceGuard device_guard(device);
  const CurrentStreamGuard stream_guard(c10::Stream(c10::Stream::UNSAFE, device, stream));
  return reinterpret_cast<uintptr_t>(device_allocator().raw_allocate(size));
}

void raw_delete(uintptr_t address) {
  auto* pointer = reinterpret_cast<void*>(address);
  TORCH_CHECK_VALUE(pointer == nullptr || allocated_size(pointer) > 0, "caching_allocator_delete: the address ",
                    pointer,
                    " was not allocated by caching_allocator_alloc(), or was deleted before; pass each address that "
                    "it returned once");
  device_allocator().raw_deallocate(pointer);
}

}  // namespace

py::dict stat_dict(const c10::CachingAllocator::Stat& stat) {
  py::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
  return result;
}

void bind_memory(py::module_& module) {
  module.def("_host_memory_stats", &host_memory_stats);
  module.def("_empty_host_cache", [] { host_allocator().empty_cache(); }, py::call_guard<py::gil_scoped_release>());
  module.def("_reset_peak_host_memory_stats", [] { host_allocator().reset_peak_stats(); });
  module.def("_reset_accumulated_host_memory_stats", [] { host_allocator().reset_accumulated_stats(); });
  module.def(
      "_get_memory_fraction", [](int64_t index) { return memory_fraction(to_device_index(index)); }, py::arg("device"));
  module.def(
      "_set_memory_fraction",
      [](double fraction, int64_t index) { set_memory_fraction(to_device_index(index), fraction); },
      py::arg("fraction"), py::arg("device"));
  module.def("_raw_allocate", &raw_allocate, py::arg("size"), py::arg("device"), py::arg("stream"));
  module.def("_raw_delete", &raw_delete, py::arg("address"));
}

}  // namespace openreg::runtime
