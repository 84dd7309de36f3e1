// SPDX-License-Identifier: BSD-3-Clause
// The extension module openreg_predict._C: Python bindings of the time source.
#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "chip_time_source.h"

namespace {

namespace py = pybind11;
using openreg::predict::CallCost;
using openreg::predict::ChipTimeSource;
using openreg::predict::DefaultCosts;
using openreg::predict::TaskTiming;

// start() and stop() release the GIL, because they wait for kernels, and a kernel written in Python needs it.
using WithoutGil = py::call_guard<py::gil_scoped_release>;

// A deleter that releases the GIL, because the destructor blocks on kernels.
struct DeleteWithoutGil {
  void operator()(ChipTimeSource* source) const {
    const py::gil_scoped_release release;
    delete source;
  }
};

// Returns the tasks as tuples, whose elements _C.pyi lists.
py::list entries(const ChipTimeSource& source) {
  py::list result;
  for (const TaskTiming& entry : source.entries()) {
    result.append(py::make_tuple(entry.call, entry.kind, entry.device, entry.queue, entry.bytes, entry.graph_launch,
                                 entry.name, entry.host_time, entry.engine, entry.launched, entry.begin, entry.end));
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_predict: keeps the time of the device.";
  py::class_<ChipTimeSource, std::unique_ptr<ChipTimeSource, DeleteWithoutGil>>(module, "ChipTimeSource")
      .def(py::init([](uint64_t host_launch, uint64_t launch, uint64_t link_latency, double memory_time,
                       double link_time, int copy_engine, int engines) {
             return std::unique_ptr<ChipTimeSource, DeleteWithoutGil>(new ChipTimeSource(
                 DefaultCosts{host_launch, launch, link_latency, memory_time, link_time, copy_engine, engines}));
           }),
           py::kw_only(), py::arg("host_launch"), py::arg("launch"), py::arg("link_latency"), py::arg("memory_time"),
           py::arg("link_time"), py::arg("copy_engine"), py::arg("engines"))
      .def("start", &ChipTimeSource::start, WithoutGil())
      .def("stop", &ChipTimeSource::stop, WithoutGil())
      .def("set_cost",
           [](ChipTimeSource& source, int64_t call, uint64_t engine_time, uint64_t graph_time, int engine,
              bool is_collective) { source.set_cost(call, CallCost{engine_time, graph_time, engine, is_collective}); })
      .def("entries", &entries)
      .def("waits", &ChipTimeSource::waits)
      .def("begin", &ChipTimeSource::begin);
  module.def("enter_call", &openreg::predict::enter_call);
}
