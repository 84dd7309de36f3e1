// SPDX-License-Identifier: BSD-3-Clause
// The Python module torch_pocket._C. Importing it registers what the other files register.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "compiled.h"
#include "fallback.h"
#include "generator.h"
#include "queue.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "The native part of the pocket backend";
  module.def("fallback_counts", &pocket::fallback_counts);
  module.def("reset_fallback_counts", &pocket::reset_fallback_counts);
  module.def("refuse_fallbacks", &pocket::refuse_fallbacks);
  module.def("synchronize_all", &pocket::synchronize_all, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("mark_forked", &pocket::mark_forked);
  module.def("is_forked", &pocket::is_forked);
  module.def("launch_compiled", &pocket::launch_compiled);
  module.def("get_random_state", [](int index) {
    at::Generator generator = pocket::default_generator(static_cast<c10::DeviceIndex>(index));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return std::pair(generator.current_seed(), generator.get_offset());
  });
  module.def("set_random_state", [](int index, uint64_t seed, uint64_t draws) {
    at::Generator generator = pocket::default_generator(static_cast<c10::DeviceIndex>(index));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
    generator.set_offset(draws);
  });
}
