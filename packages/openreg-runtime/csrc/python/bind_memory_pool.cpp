// SPDX-License-Identifier: BSD-3-Clause
// Bindings of private memory pools.
#include <torch/csrc/utils/pybind.h>

#include <thread>

#include "allocator/memory_pool.h"
#include "openreg/runtime/allocator.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

// Serves allocations of the calling thread, on all streams, from a pool, outside of a capture.
void begin_allocate_of_thread(int64_t index, c10::MempoolId_t id) {
  const auto thread = std::this_thread::get_id();
  begin_allocate_to_pool(
      to_device_index(index), id, [thread](c10::Stream) { return std::this_thread::get_id() == thread; },
      /*for_capture=*/false);
}

py::dict reserved_bytes_by_private_pools(int64_t index) {
  constexpr const char* kTypes[] = {"all", "small_pool", "large_pool"};
  py::dict result;
  for (const auto& [id, array] :
       device_allocator().getDeviceStats(to_device_index(index)).reserved_bytes_by_private_pools) {
    py::dict pool;
    for (size_t type = 0; type < array.size(); ++type) {
      pool[kTypes[type]] = stat_dict(array[type]);
    }
    result[py::make_tuple(id.first, id.second)] = pool;
  }
  return result;
}

}  // namespace

void bind_memory_pool(py::module_& module) {
  module.def("_begin_allocate_of_thread_to_pool", &begin_allocate_of_thread, py::arg("device"), py::arg("pool"));
  module.def(
      "_end_allocate_to_pool",
      [](int64_t index, c10::MempoolId_t id) { end_allocate_to_pool(to_device_index(index), id); }, py::arg("device"),
      py::arg("pool"));
  module.def(
      "_retain_pool", [](int64_t index, c10::MempoolId_t id) { retain_pool(to_device_index(index), id); },
      py::arg("device"), py::arg("pool"));
  module.def(
      "_release_pool", [](int64_t index, c10::MempoolId_t id) { release_pool(to_device_index(index), id); },
      py::arg("device"), py::arg("pool"));
  module.def("_empty_pool", [](c10::MempoolId_t id) { device_allocator().emptyCache(id); }, py::arg("pool"));
  module.def("_reserved_bytes_by_private_pools", &reserved_bytes_by_private_pools, py::arg("device"));
}

}  // namespace openreg::runtime
