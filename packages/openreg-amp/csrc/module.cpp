// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_amp._C: loading it registers the autocast rules; it exports nothing. openreg_amp/__init__.py has
// compared the build with torch and the runtime before.
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_amp: loading it registers the autocast rules.";
}
