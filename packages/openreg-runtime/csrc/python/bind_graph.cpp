// SPDX-License-Identifier: BSD-3-Clause
// Bindings for graphs beyond torch.accelerator.Graph.
#include <torch/csrc/utils/pybind.h>

#include "allocator/memory_pool.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/stream.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

void bind_graph(py::module_& module) {
  module.def("_make_pool_id", &make_pool_id, py::arg("for_capture"));
  module.def("_is_current_stream_capturing", [] { return is_initialized() && is_capturing(current_stream()); });
}

}  // namespace openreg::runtime
