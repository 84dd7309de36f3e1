// SPDX-License-Identifier: BSD-3-Clause
// Bindings for sharing and serialization: storages of several processes, whose handles are bytes, and hints in files.
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <string>

#include "base/serialization.h"
#include "python/bindings.h"
#include "share/shared_memory.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

py::bytes to_bytes(const orIpcMemHandle_t& handle) {
  return {handle.reserved, sizeof(handle.reserved)};
}

orIpcMemHandle_t to_handle(const char* function, const std::string& bytes) {
  orIpcMemHandle_t handle{};
  TORCH_CHECK_VALUE(bytes.size() == sizeof(handle.reserved), function,
                    ": expected a handle of openreg memory, which has ", sizeof(handle.reserved), " bytes, but got ",
                    bytes.size(), " bytes; pass what the sending process got, unchanged");
  std::memcpy(handle.reserved, bytes.data(), bytes.size());
  return handle;
}

py::tuple to_tuple(const IpcRefCount& count) {
  return py::make_tuple(to_bytes(count.page), count.slot);
}

py::tuple share(const at::Storage& storage) {
  const SharedRange range = share_storage(storage);
  return py::make_tuple(to_bytes(range.segment), range.offset);
}

py::list collect() {
  py::list result;
  for (const IpcRefCount& count : collect_ipc_ref_counts()) {
    result.append(to_tuple(count));
  }
  return result;
}

at::Storage open(int64_t index, const std::string& segment, size_t offset, size_t size, const std::string& page,
                 size_t slot) {
  return open_storage(to_device_index(index), {to_handle("_open_storage", segment), offset}, size,
                      {to_handle("_open_storage", page), slot});
}

}  // namespace

void bind_sharing(py::module_& module) {
  module.def("_share_storage", &share, py::arg("storage"));
  module.def(
      "_new_ipc_ref_count", [](int64_t index) { return to_tuple(new_ipc_ref_count(to_device_index(index))); },
      py::arg("device"));
  module.def("_collect_ipc_ref_counts", &collect);
  module.def(
      "_cancel_ipc_ref_count",
      [](const std::string& page, size_t slot) {
        cancel_ipc_ref_count({to_handle("_cancel_ipc_ref_count", page), slot});
      },
      py::arg("page"), py::arg("slot"));
  module.def("_open_storage", &open, py::arg("device"), py::arg("segment"), py::arg("offset"), py::arg("size"),
             py::arg("page"), py::arg("slot"));
  module.def(
      "_release_ipc_ref_count",
      [](int64_t index, const std::string& page, size_t slot) {
        release_ipc_ref_count(to_device_index(index), {to_handle("_release_ipc_ref_count", page), slot});
      },
      py::arg("device"), py::arg("page"), py::arg("slot"));
  module.def("_release_all_ipc_ref_counts", &release_all_ipc_ref_counts);
  module.def("_set_resident", &set_resident, py::arg("tensor"), py::arg("resident"));
  module.def("_is_resident", &is_resident, py::arg("tensor"));
}

}  // namespace openreg::runtime
