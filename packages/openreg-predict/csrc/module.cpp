// SPDX-License-Identifier: BSD-3-Clause
// The module openreg_predict._C: what a program tells the device.
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <vector>

#include "task_log.h"

namespace {

namespace py = pybind11;
using openreg::predict::Entry;
using openreg::predict::TaskLog;

// Ending a subscription waits for kernels, and one that is written in Python needs the GIL.
using WithoutGil = py::call_guard<py::gil_scoped_release>;

struct DeleteWithoutGil {
  void operator()(TaskLog* log) const {
    const py::gil_scoped_release release;
    delete log;
  }
};

const char* name_of(Entry::Kind kind) {
  switch (kind) {
    case Entry::Kind::task:
      return "task";
    case Entry::Kind::wait:
      return "wait";
    case Entry::Kind::host_waits_for_place:
      return "host waits for place";
    default:
      return "host waits for device";
  }
}

py::list take(TaskLog& log) {
  std::vector<Entry> entries;
  {
    const py::gil_scoped_release release;
    entries = log.take();
  }
  py::list result;
  for (const Entry& entry : entries) {
    result.append(py::make_tuple(name_of(entry.kind), entry.call, entry.task, entry.device, entry.queue, entry.ticket,
                                 entry.bytes, entry.graph_launch, entry.waiting_queue, entry.name));
  }
  return result;
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "Native part of openreg_predict: notes what a program tells the device.";
  py::class_<TaskLog, std::unique_ptr<TaskLog, DeleteWithoutGil>>(module, "TaskLog")
      .def(py::init<>(), WithoutGil())
      .def("stop", &TaskLog::stop, WithoutGil())
      .def("take", &take);
  module.def("enter_call", &openreg::predict::enter_call);
}
