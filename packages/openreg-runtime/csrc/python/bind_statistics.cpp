// SPDX-License-Identifier: BSD-3-Clause
// Bindings of the counters of devices, streams and engines, and of fault injection.
#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <string>

#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

// Returns the counters that devices and streams have in common.
template <class Stats>
py::dict work_counters(const Stats& stats) {
  py::dict result;
  result["launches"] = stats.launches;
  result["copies"] = stats.copies;
  result["bytes_copied"] = stats.bytes_copied;
  result["busy_nanoseconds"] = stats.busy_nanoseconds;
  return result;
}

py::dict device_stats(int64_t index) {
  orDeviceStats stats{};
  OPENREG_CHECK(orDeviceGetStats(&stats, to_device_index(index)));
  py::dict result = work_counters(stats);
  result["allocated_bytes"] = stats.allocated_bytes;
  result["peak_allocated_bytes"] = stats.peak_allocated_bytes;
  return result;
}

py::dict stream_stats(int64_t id, int64_t index) {
  orStreamStats stats{};
  OPENREG_CHECK(orStreamGetStats(native_handle(c10::Stream::unpack3(id, to_device_index(index), kDeviceType)), &stats));
  py::dict result = work_counters(stats);
  result["submitted"] = stats.submitted;
  result["completed"] = stats.completed;
  return result;
}

py::list engine_stats() {
  int count = 0;
  OPENREG_CHECK(orGetEngineCount(&count));
  py::list result;
  for (int engine = 0; engine < count; ++engine) {
    orEngineStats stats{};
    OPENREG_CHECK(orEngineGetStats(&stats, engine));
    py::dict entry;
    entry["name"] = stats.name;
    entry["tasks"] = stats.tasks;
    entry["busy_nanoseconds"] = stats.busy_nanoseconds;
    result.append(std::move(entry));
  }
  return result;
}

int utilization(int64_t index) {
  int percent = 0;
  OPENREG_CHECK(orDeviceGetUtilization(&percent, to_device_index(index)));
  return percent;
}

void set_faults(const std::optional<std::string>& specification) {
  OPENREG_CHECK(orSetFaults(specification ? specification->c_str() : nullptr));
}

}  // namespace

void bind_statistics(py::module_& module) {
  module.def("_get_device_stats", &device_stats, py::arg("device"));
  module.def("_get_stream_stats", &stream_stats, py::arg("stream_id"), py::arg("device"));
  module.def("_get_engine_stats", &engine_stats);
  module.def("_get_utilization", &utilization, py::arg("device"));
  module.def("_set_faults", &set_faults, py::arg("specification"));
}

}  // namespace openreg::runtime
