// SPDX-License-Identifier: BSD-3-Clause
// Binding of the launch entry for generated code.
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdint>

#include "openreg/runtime/launch_entry.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

uintptr_t launch_entry(unsigned int version) {
  torch::utils::device_lazy_init(kDeviceType);
  const orLaunchEntry* entry = nullptr;
  const orError_t status = orGetLaunchEntry(version, &entry);
  TORCH_CHECK_NOT_IMPLEMENTED(status != orErrorNotSupported, orGetLaunchEntryMessage());
  TORCH_CHECK(status == orSuccess, orGetLaunchEntryMessage());
  return reinterpret_cast<uintptr_t>(entry);
}

}  // namespace

void bind_launch_entry(py::module_& module) {
  module.attr("_launch_entry_version") = OPENREG_LAUNCH_ENTRY_VERSION;
  module.def("_launch_entry", &launch_entry, py::arg("version"));
}

}  // namespace openreg::runtime
