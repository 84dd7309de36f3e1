// SPDX-License-Identifier: BSD-3-Clause
// Bindings of streams and events beyond torch.Stream and torch.Event.
#include <torch/csrc/Event.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/sync_debug.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

void delay_current_stream(uint64_t nanoseconds) {
  torch::utils::device_lazy_init(kDeviceType);  // else torch.accelerator.synchronize(0) would return at once
  const orStream_t stream = native_handle(current_stream());
  const GilRelease release;  // because the call blocks while the stream's queue is full
  OPENREG_CHECK(orStreamDelay(stream, nanoseconds));
}

// Returns the time between two events in milliseconds. torch.Event.elapsed_time() does not accept subclasses, and
// torch.openreg.Event must be a subclass of torch.Event.
double event_elapsed_time(const py::object& start, const py::object& end) {
  TORCH_CHECK_TYPE(THPEvent_Check(start.ptr()) && THPEvent_Check(end.ptr()),
                   "elapsed_time(): expected two events, each a torch.Event or torch.openreg.Event");
  return reinterpret_cast<THPEvent*>(start.ptr())->event.elapsedTime(reinterpret_cast<THPEvent*>(end.ptr())->event);
}

py::tuple stream_from_address(uintptr_t handle) {
  const c10::Stream stream = stream_from_handle(reinterpret_cast<orStream_t>(handle));
  return py::make_tuple(stream.id(), stream.device_index());
}

int stream_priority(int64_t id, int64_t index) {
  int priority = 0;
  OPENREG_CHECK(
      orStreamGetPriority(native_handle(c10::Stream::unpack3(id, to_device_index(index), kDeviceType)), &priority));
  return priority;
}

py::tuple stream_priority_range() {
  int least = 0;
  int greatest = 0;
  OPENREG_CHECK(orDeviceGetStreamPriorityRange(&least, &greatest));
  return py::make_tuple(least, greatest);
}

}  // namespace

void bind_stream(py::module_& module) {
  module.def("_delay_current_stream", &delay_current_stream, py::arg("nanoseconds"));
  module.def("_event_elapsed_time", &event_elapsed_time, py::arg("start"), py::arg("end"));
  module.def(
      "_default_stream_id", [](int64_t index) { return default_stream(to_device_index(index)).id(); },
      py::arg("device"));
  module.def("_stream_from_handle", &stream_from_address, py::arg("handle"));
  module.def("_stream_priority", &stream_priority, py::arg("stream_id"), py::arg("device"));
  module.def("_stream_priority_range", &stream_priority_range);
  module.def("_get_sync_debug_mode", [] { return static_cast<int>(sync_debug_mode()); });
  module.def(
      "_set_sync_debug_mode", [](int mode) { set_sync_debug_mode(static_cast<SyncDebugMode>(mode)); }, py::arg("mode"));
}

}  // namespace openreg::runtime
