// SPDX-License-Identifier: BSD-3-Clause
// The Python module torch_pocket._C. Importing it registers what the other files register.
#include <pybind11/stl.h>

#include "fallback.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "The native part of the pocket backend";
  module.def("fallback_counts", &pocket::fallback_counts);
  module.def("reset_fallback_counts", &pocket::reset_fallback_counts);
  module.def("refuse_fallbacks", &pocket::refuse_fallbacks);
}
