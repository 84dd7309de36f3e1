// SPDX-License-Identifier: BSD-3-Clause
// The extension module openreg_distributed._C: Python bindings of the process group. Before it is imported,
// openreg_distributed/__init__.py checks that the build matches torch and the runtime.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "group/faults.h"
#include "group/process_group.h"
#include "group/trace.h"

namespace {

namespace py = pybind11;
using openreg::distributed::ProcessGroup;

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_distributed: the process group.";
  py::module_::import("torch.distributed");  // Registers the base class.
  openreg::distributed::register_faults();
  module.def(
      "_dump_trace",
      [](bool stacks, bool only_active) { return py::bytes(openreg::distributed::dump_trace(stacks, only_active)); },
      py::arg("stacks"), py::arg("only_active"));
  py::class_<ProcessGroup, c10::intrusive_ptr<ProcessGroup>, c10d::Backend>(module, "ProcessGroupOccl")
      .def(py::init([](const c10::intrusive_ptr<c10d::Backend>& transport, std::chrono::milliseconds timeout,
                       bool copies_operands, std::string token) {
             return c10::make_intrusive<ProcessGroup>(transport, timeout, copies_operands, std::move(token));
           }),
           py::arg("transport"), py::arg("timeout"), py::arg("copies_operands"), py::arg("token"),
           py::call_guard<py::gil_scoped_release>())
      // Does nothing. PyTorch calls it on ranks that are not in a new group, because some backends need all ranks to
      // split a group.
      .def("perform_nocolor_split", [](ProcessGroup& /*self*/, const py::object& /*device*/) {})
      .def_property_readonly("options", [](ProcessGroup& self) {
        return py::module_::import("openreg_distributed.options").attr("options_to_split")(self.getBackendOptions());
      });
}
