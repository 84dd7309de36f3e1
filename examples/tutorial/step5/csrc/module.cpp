// SPDX-License-Identifier: BSD-3-Clause
// The Python module torch_pocket._C. Importing it registers what the other files register.
#include <pybind11/pybind11.h>

PYBIND11_MODULE(_C, module) {
  module.doc() = "The native part of the pocket backend";
}
