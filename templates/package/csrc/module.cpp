// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_example._C: importing it registers the operator; it exports nothing.
//
// Registering is a function, not a static object, so that a package compiled for another runtime is refused before it
// changes anything.
#include <torch/csrc/utils/pybind.h>

#include "openreg/runtime/version.h"
#include "scale.h"

namespace {

void start() {
  openreg::runtime::require_abi_version("openreg-example", openreg::runtime::kAbiVersion);
  openreg::example::register_operators();
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_example: importing it registers the operator.";
  try {
    start();
  } catch (const c10::Error& error) {
    throw pybind11::import_error(error.what_without_backtrace());
  }
}
