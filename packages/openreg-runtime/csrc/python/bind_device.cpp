// SPDX-License-Identifier: BSD-3-Clause
// Bindings of devices.
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/version.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

py::dict device_properties(int64_t index) {
  orDeviceProp properties{};
  OPENREG_CHECK(orGetDeviceProperties(&properties, to_device_index(index)));
  py::dict result;
  result["name"] = properties.name;
  result["total_memory"] = properties.totalGlobalMem;
  result["multi_processor_count"] = properties.multiProcessorCount;
  result["major"] = properties.major;
  result["minor"] = properties.minor;
  return result;
}

bool can_access_peer(int64_t index, int64_t peer) {
  int result = 0;
  OPENREG_CHECK(orDeviceCanAccessPeer(&result, to_device_index(index), to_device_index(peer)));
  return result != 0;
}

}  // namespace

void bind_device(py::module_& module) {
  module.attr("_abi_version") = abi_version();
  // PyTorch initializes this device type by torch.openreg._lazy_init(), which calls _init().
  torch::utils::register_fork_handler_for_device_init(kDeviceType);
  module.def("_init", &ensure_initialized);
  module.def("_is_initialized", &is_initialized);
  module.def("_is_in_bad_fork", &is_in_bad_fork);
  module.def("_get_device_count", [] {
    int count = 0;
    OPENREG_CHECK(orGetDeviceCount(&count));
    return count;
  });
  module.def("_check_device_index", &check_device_index, py::arg("device"));
  module.def("_get_device", &current_device);
  module.def("_set_device", [](int64_t index) { set_device(to_device_index(index)); }, py::arg("device"));
  module.def(
      "_exchange_device", [](int64_t index) { return exchange_device(to_device_index(index)); }, py::arg("device"));
  module.def(
      "_maybe_exchange_device",
      [](int64_t index) { return index < 0 ? current_device() : exchange_device(to_device_index(index)); },
      py::arg("device"));
  module.def(
      "_synchronize_device", [](int64_t index) { synchronize_device(to_device_index(index)); }, py::arg("device"));
  module.def("_reset_device", [](int64_t index) { reset_device(to_device_index(index)); }, py::arg("device"));
  module.def("_get_device_properties", &device_properties, py::arg("device"));
  module.def("_can_access_peer", &can_access_peer, py::arg("device"), py::arg("peer"));
}

}  // namespace openreg::runtime
