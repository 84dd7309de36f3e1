// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_ops._C: loading it registers all operators outside of the minimal set.
#include <torch/csrc/utils/pybind.h>

#include "kernel_choice.h"
#include "openreg/runtime/version.h"

namespace py = pybind11;

namespace openreg::ops {

PYBIND11_MODULE(_C, module) {
  // A mistake in the settings or the installation reaches the user as the import's error, without a C++ stack.
  try {
    runtime::require_abi_version("openreg-ops", runtime::kAbiVersion);
    check_kernel_choice();  // refuses a nonsense OPENREG_KERNELS now
  } catch (const c10::Error& error) {
    throw py::import_error(error.what_without_backtrace());
  }
  module.doc() = "Native part of openreg_ops: operators of the openreg device outside of the minimal set.";
}

}  // namespace openreg::ops
