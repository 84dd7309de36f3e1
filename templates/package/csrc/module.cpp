// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_example._C: loading it registers the operator; it exports the observer.
// openreg_example/__init__.py has compared the build with torch and the runtime before.
#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "launch_counter.h"

namespace {

namespace py = pybind11;
using openreg::example::LaunchCounter;

// Ending a subscription waits for kernels, and one that is written in Python needs the GIL.
using WithoutGil = py::call_guard<py::gil_scoped_release>;

struct DeleteWithoutGil {
  void operator()(LaunchCounter* counter) const {
    const py::gil_scoped_release release;
    delete counter;
  }
};

void bind_launch_counter(py::module_& module) {
  py::class_<LaunchCounter, std::unique_ptr<LaunchCounter, DeleteWithoutGil>>(module, "LaunchCounter")
      .def(py::init<>(), WithoutGil())
      .def("stop", &LaunchCounter::stop, WithoutGil())
      .def("__enter__", [](py::object self) { return self; })
      .def(
          "__exit__", [](LaunchCounter& self, const py::args&) { self.stop(); }, WithoutGil())
      .def_property_readonly("launched", &LaunchCounter::launched)
      .def_property_readonly("completed", &LaunchCounter::completed);
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_example: loading it registers the operator.";
  bind_launch_counter(module);
}
