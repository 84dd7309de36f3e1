// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_ops._C: loading it registers all operators outside of the minimal set.
#include <torch/csrc/utils/pybind.h>

#include "registration/registry.h"
#include "support/kernel_choice.h"

namespace py = pybind11;

namespace openreg::ops {

namespace {

// Per operator: the dtypes that it refuses, a bit for each number of c10::ScalarType, and whether operands must agree.
py::dict dtype_rules_by_name() {
  py::dict result;
  for (const auto& [name, rule] : declared_rules()) {
    result[py::str(name)] = py::make_tuple(rule.refused, rule.agreement != Agreement::kNone);
    for (const ModeRule& of_mode : rule.modes) {
      if (!of_mode.mode.empty()) {
        result[py::str(name + ":" + std::string(of_mode.mode))] = py::make_tuple(of_mode.refused, false);
      }
    }
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  // A mistake in the settings or the installation reaches the user as the import's error, without a C++ stack.
  try {
    require_sound_declarations();
    check_kernel_choice();  // refuses a nonsense OPENREG_KERNELS now
  } catch (const c10::Error& error) {
    throw py::import_error(error.what_without_backtrace());
  }
  module.doc() = "Native part of openreg_ops: operators of the openreg device outside of the minimal set.";
  module.def("_dtype_rules", &dtype_rules_by_name);
}

}  // namespace openreg::ops
