// SPDX-License-Identifier: BSD-3-Clause
// The extension module openreg_amp._C. Loading it registers the autocast rules. It exports nothing. Before it is
// imported, openreg_amp/__init__.py checks that the build matches torch and the runtime.
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_amp: loading it registers the autocast rules.";
}
