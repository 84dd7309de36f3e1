// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_ops._C: loading it registers all operators outside of the minimal set.
#include <torch/csrc/utils/pybind.h>

#include "registration/registry.h"
#include "support/kernel_choice.h"

namespace py = pybind11;

namespace openreg::ops {

namespace {

// Returns the dtypes that each operator's kernel rejects, one bit for each number of c10::ScalarType, and true if its
// operands must have one dtype. A name with ":mode" has the dtypes that it rejects in that mode.
py::dict dtype_rules_by_name() {
  py::dict result;
  for (const auto& [name, traits] : registered_traits()) {
    result[py::str(name)] = py::make_tuple(traits.refused, traits.dtype_match != DtypeMatch::kNone);
    for (const ModeTraits& of_mode : traits.modes) {
      if (!of_mode.mode.empty()) {
        result[py::str(name + ":" + std::string(of_mode.mode))] = py::make_tuple(of_mode.refused, false);
      }
    }
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  // Wrong settings and a broken installation become the import's error, without a C++ stack.
  try {
    check_registrations();
    check_kernel_choice();  // throws for an invalid OPENREG_KERNELS
  } catch (const c10::Error& error) {
    throw py::import_error(error.what_without_backtrace());
  }
  module.doc() = "Native part of openreg_ops: operators of the openreg device outside of the minimal set.";
  module.def("_dtype_rules", &dtype_rules_by_name);
}

}  // namespace openreg::ops
