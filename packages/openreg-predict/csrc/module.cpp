// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_predict._C: the device in the time of a described chip.
#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "timekeeper.h"

namespace {

namespace py = pybind11;
using openreg::predict::Cost;
using openreg::predict::Defaults;
using openreg::predict::Entry;
using openreg::predict::Timekeeper;

// Starting and ending wait for kernels, and one that is written in Python needs the GIL.
using WithoutGil = py::call_guard<py::gil_scoped_release>;

struct DeleteWithoutGil {
  void operator()(Timekeeper* keeper) const {
    const py::gil_scoped_release release;
    delete keeper;
  }
};

py::list entries(const Timekeeper& keeper) {
  py::list result;
  for (const Entry& entry : keeper.entries()) {
    result.append(py::make_tuple(entry.call, entry.kind, entry.device, entry.queue, entry.bytes, entry.graph_launch,
                                 entry.name, entry.host_time, entry.engine, entry.launched, entry.begin, entry.end));
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_predict: keeps the time of the device.";
  py::class_<Timekeeper, std::unique_ptr<Timekeeper, DeleteWithoutGil>>(module, "Timekeeper")
      .def(py::init([](uint64_t host_launch, uint64_t launch, uint64_t link_latency, double memory_time,
                       double link_time, int copy_engine, int engines) {
             return std::unique_ptr<Timekeeper, DeleteWithoutGil>(new Timekeeper(
                 Defaults{host_launch, launch, link_latency, memory_time, link_time, copy_engine, engines}));
           }),
           py::kw_only(), py::arg("host_launch"), py::arg("launch"), py::arg("link_latency"), py::arg("memory_time"),
           py::arg("link_time"), py::arg("copy_engine"), py::arg("engines"))
      .def("start", &Timekeeper::start, WithoutGil())
      .def("stop", &Timekeeper::stop, WithoutGil())
      .def("set_cost",
           [](Timekeeper& keeper, int64_t call, uint64_t engine_time, uint64_t graph_time, int engine,
              bool is_collective) { keeper.set_cost(call, Cost{engine_time, graph_time, engine, is_collective}); })
      .def("entries", &entries)
      .def("waits", &Timekeeper::waits)
      .def("begin", &Timekeeper::begin);
  module.def("enter_call", &openreg::predict::enter_call);
}
