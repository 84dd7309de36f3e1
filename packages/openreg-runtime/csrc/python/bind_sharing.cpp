// SPDX-License-Identifier: BSD-3-Clause
// Bindings of what leaves the process: storages that others see (handles are bytes), and hints that files keep.
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <string>

#include "bindings.h"
#include "openreg/runtime/serialization.h"
#include "openreg/runtime/shared_memory.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

py::bytes to_bytes(const orIpcMemHandle_t& handle) {
  return {handle.reserved, sizeof(handle.reserved)};
}

orIpcMemHandle_t to_handle(const std::string& bytes) {
  orIpcMemHandle_t handle{};
  TORCH_CHECK_VALUE(bytes.size() == sizeof(handle.reserved), "a handle of openreg memory has ", sizeof(handle.reserved),
                    " bytes, got ", bytes.size());
  std::memcpy(handle.reserved, bytes.data(), bytes.size());
  return handle;
}

py::tuple to_tuple(const Receipt& receipt) {
  return py::make_tuple(to_bytes(receipt.page), receipt.slot);
}

py::tuple share(const at::Storage& storage) {
  const SharedRange range = share_storage(storage);
  return py::make_tuple(to_bytes(range.segment), range.offset);
}

py::list collect() {
  py::list result;
  for (const Receipt& receipt : collect_receipts()) {
    result.append(to_tuple(receipt));
  }
  return result;
}

at::Storage open(int64_t index, const std::string& segment, size_t offset, size_t size, const std::string& page,
                 size_t slot) {
  return open_storage(to_device_index(index), {to_handle(segment), offset}, size, {to_handle(page), slot});
}

}  // namespace

void bind_sharing(py::module_& module) {
  module.def("_share_storage", &share, py::arg("storage"));
  module.def(
      "_make_receipt", [](int64_t index) { return to_tuple(make_receipt(to_device_index(index))); }, py::arg("device"));
  module.def("_collect_receipts", &collect);
  module.def(
      "_return_receipt", [](const std::string& page, size_t slot) { return_receipt({to_handle(page), slot}); },
      py::arg("page"), py::arg("slot"));
  module.def("_open_storage", &open, py::arg("device"), py::arg("segment"), py::arg("offset"), py::arg("size"),
             py::arg("page"), py::arg("slot"));
  module.def(
      "_acknowledge",
      [](int64_t index, const std::string& page, size_t slot) {
        acknowledge(to_device_index(index), {to_handle(page), slot});
      },
      py::arg("device"), py::arg("page"), py::arg("slot"));
  module.def("_acknowledge_all", &acknowledge_all);
  module.def("_set_resident", &set_resident, py::arg("tensor"), py::arg("resident"));
  module.def("_is_resident", &is_resident, py::arg("tensor"));
}

}  // namespace openreg::runtime
