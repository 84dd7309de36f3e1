// SPDX-License-Identifier: BSD-3-Clause
// Times of torch.autograd.profiler.profile(use_device="openreg"): PyTorch marks the current stream before and after
// each operator, and asks how long the device took between the marks (source: torch::profiler::impl::ProfilerStubs).
// Without them every mark is an error message, and the times are arbitrary numbers.
//
// REAL HW: the same with the driver's events; mark and ranges go to the vendor's tracing tool. There is none here, so
// they do nothing.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "base/enqueue.h"
#include "openreg.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/event.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

using torch::profiler::impl::ProfilerStubs;
using Mark = torch::profiler::impl::ProfilerVoidEventStub;

orEvent_t handle(const Mark* mark) {
  return static_cast<orEvent_t>(mark->get());
}

void release_event(void* event) {
  OPENREG_WARN(orEventDestroy(static_cast<orEvent_t>(event)));
}

// Marks are made inside operators and read after them, where an exception would become a message for each operator.
// What cannot be marked takes no time: a process that has not used the device, a stream that records a graph, a lost
// device.
class ProfilerStubsImpl final : public ProfilerStubs {
 public:
  void record(c10::DeviceIndex* device, Mark* mark, int64_t* cpu_ns) const override {
    mark->reset();
    if (cpu_ns != nullptr) {
      *cpu_ns = c10::getTime();
    }
    if (!is_initialized()) {
      return;
    }
    const c10::Stream stream = current_stream();
    if (device != nullptr) {
      *device = stream.device_index();
    }
    if (is_capturing(stream)) {
      return;
    }
    orEvent_t event = nullptr;
    if (orEventCreateWithFlags(&event, orEventEnableTiming) == orSuccess) {
      *mark = Mark(event, &release_event);
      if (enqueue_without_gil([&] { return orEventRecord(event, native_handle(stream)); }) == orSuccess) {
        return;
      }
    }
    orGetLastError();
    mark->reset();
  }

  float elapsed(const Mark* start, const Mark* end) const override {
    if (!*start || !*end) {
      return 0;
    }
    float milliseconds = 0;
    try {
      synchronize_event(handle(end));
      if (orEventElapsedTime(&milliseconds, handle(start), handle(end)) == orSuccess) {
        return milliseconds * 1000;
      }
    } catch (const c10::Error&) {
      // The device is lost, as the program hears from its own next call.
    }
    orGetLastError();
    return 0;
  }

  bool enabled() const override { return true; }

  void onEachDevice(std::function<void(int)> function) const override {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      const CurrentDevice current(index);
      function(index);
    }
  }

  void synchronize() const override { synchronize_device(current_device()); }

  void mark(const char* /*name*/) const override {}
  void rangePush(const char* /*name*/) const override {}
  void rangePop() const override {}
};

[[maybe_unused]] const bool stubs_are_registered = [] {
  static ProfilerStubsImpl stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  return true;
}();

}  // namespace

}  // namespace openreg::runtime
