// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_profiler._C. Before its import, openreg_profiler/__init__.py checks that the build matches torch
// and the runtime.
#include <torch/csrc/utils/pybind.h>

#include "activity_profiler.h"
#include "activity_recorder.h"
#include "trace_names.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_profiler: loading it registers the profiler of the device.";
  openreg::profiler::register_activity_profiler();
  module.def("abandon_all", &openreg::profiler::ActivityRecorder::abandon_all);
  module.def("is_recording", &openreg::profiler::ActivityRecorder::is_any_running);
  module.def("name_stream", [](uintptr_t handle, std::string name) {
    openreg::profiler::name_stream(reinterpret_cast<orStream_t>(handle), std::move(name));
  });
}
