// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_profiler._C. openreg_profiler/__init__.py has compared the build with torch and the runtime
// before.
#include <torch/csrc/utils/pybind.h>

#include "activity_profiler.h"
#include "recorder.h"
#include "streams.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_profiler: loading it registers the profiler of the device.";
  openreg::profiler::register_activity_profiler();
  module.def("abandon_all", &openreg::profiler::Recorder::abandon_all);
  module.def("is_recording", &openreg::profiler::Recorder::is_any_running);
  module.def("name_stream", [](uintptr_t handle, std::string name) {
    openreg::profiler::name_stream(reinterpret_cast<orStream_t>(handle), std::move(name));
  });
}
