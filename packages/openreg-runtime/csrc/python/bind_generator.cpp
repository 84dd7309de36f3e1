// SPDX-License-Identifier: BSD-3-Clause
// Bindings of generators.
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include "openreg/runtime/generator.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

void bind_generator(py::module_& module) {
  module.def(
      "_get_default_generator", [](int64_t index) { return default_generator(to_device_index(index)); },
      py::arg("device"));
}

}  // namespace openreg::runtime
