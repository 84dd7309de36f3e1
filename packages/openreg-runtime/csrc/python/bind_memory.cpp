// SPDX-License-Identifier: BSD-3-Clause
// Bindings of memory statistics that PyTorch has no device-agnostic function for.
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "openreg/runtime/allocator.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

py::dict stat_dict(const c10::CachingAllocator::Stat& stat) {
  py::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
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
  return result;
}

}  // namespace

void bind_memory(py::module_& module) {
  module.def("_host_memory_stats", &host_memory_stats);
  module.def("_reset_peak_host_memory_stats", [] { host_allocator().reset_peak_stats(); });
  module.def("_reset_accumulated_host_memory_stats", [] { host_allocator().reset_accumulated_stats(); });
}

}  // namespace openreg::runtime
