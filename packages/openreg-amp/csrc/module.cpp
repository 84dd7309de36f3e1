// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_amp._C: importing it registers the autocast rules; it exports nothing.
//
// The rules are registered here rather than by static objects (TORCH_LIBRARY_IMPL), because those
// run while the library is loaded: a package compiled for another runtime would have changed
// PyTorch's operators before anything could refuse it.
#include <torch/csrc/utils/pybind.h>

#include "autocast.h"
#include "openreg/runtime/version.h"

namespace {

void start() {
  openreg::runtime::require_abi_version("openreg-amp", openreg::runtime::kAbiVersion);
  openreg::amp::register_autocast_rules();
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_amp: importing it registers the autocast rules.";
  try {
    start();
  } catch (const c10::Error& error) {
    throw pybind11::import_error(error.what_without_backtrace());
  }
}
