// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_example._C: importing it registers the operator; it exports the observer.
//
// Registering is a function, not a static object, so that a package compiled for another runtime is refused before it
// changes anything.
#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "launch_counter.h"
#include "openreg/runtime/version.h"
#include "scale.h"

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

void start() {
  openreg::runtime::require_abi_version("openreg-example", openreg::runtime::kAbiVersion);
  openreg::example::register_operators();
}

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
  module.doc() = "Native part of openreg_example: importing it registers the operator.";
  try {
    start();
  } catch (const c10::Error& error) {
    throw py::import_error(error.what_without_backtrace());
  }
  bind_launch_counter(module);
}
