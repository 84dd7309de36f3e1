// SPDX-License-Identifier: BSD-3-Clause
// Implements torch::profiler::impl::ProfilerStubs, for torch.autograd.profiler.profile(use_device="openreg"). PyTorch
// records an event on the current stream before and after each operator, and queries the time between the two. Without
// stubs every record prints an error message, and the times are arbitrary numbers.
//
// REAL HW: events work in the same way; mark(), rangePush() and rangePop() call the vendor's tracing tool. The
// simulated device has none, so they do nothing.
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

// The stubs. record() and elapsed() throw no errors of the device, because PyTorch calls them for each operator and
// would print a message each time. If no event can be recorded, the time is 0: before the first use of the device, on a
// capturing stream, or on a lost device.
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
      // The device has failed. The program's next call throws the same error.
    }
    orGetLastError();
    return 0;
  }

  bool enabled() const override { return true; }

  void onEachDevice(std::function<void(int)> function) const override {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      const CurrentDeviceGuard current(index);
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
