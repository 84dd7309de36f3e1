// SPDX-License-Identifier: BSD-3-Clause
// A profiler of the device that records nothing and warns about it (source:
// torch::profiler::impl::PrivateUse1ProfilerRegistry).
//
// Without a profiler, torch.profiler accepts ProfilerActivity.PrivateUse1 and silently omits the device from its trace.
// The registry uses only the first factory, so this one is registered only if no installed package has a profiler.
#include <libkineto.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <torch/csrc/utils/pybind.h>

#include "openreg.h"
#include "python/bindings.h"

namespace py = pybind11;

namespace openreg::runtime {

namespace {

using libkineto::ActivityType;

void warn() {
  const py::gil_scoped_acquire gil;
  try {
    py::module_::import("openreg_runtime.openreg._profiler").attr("warn_that_nothing_is_recorded")();
  } catch (py::error_already_set& error) {
    // Python has turned the warning into an error. Kineto swallows exceptions, so this error is shown as unraisable.
    error.discard_as_unraisable("openreg_runtime");
  }
}

// Returns true if a device has executed a task that a profiler would record, or if its counters cannot be read. PyTorch
// initializes the device before it stops a profile.
bool has_worked() {
  if (!is_initialized()) {
    return false;
  }
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    orDeviceStats stats{};
    if (orDeviceGetStats(&stats, index) != orSuccess || stats.launches + stats.copies > 0) {
      return true;
    }
  }
  return false;
}

// The session of a profile that begins before the device is used. Warns at its end if the device was used meanwhile.
class SilentProfilerSession final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {}
  void stop() override {
    if (has_worked()) {
      warn();
    }
  }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger& /*logger*/) override {}
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return nullptr; }
};

// The profiler. It warns at once if the device has been used already.
class SilentProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activities_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& /*config*/) override {
    // Kineto calls this for every profile, also for one of the CPU alone, which has no activity of this device.
    if (wanted.count(ActivityType::PRIVATEUSE1_RUNTIME) == 0) {
      return nullptr;
    }
    if (!has_worked()) {
      return std::make_unique<SilentProfilerSession>();
    }
    warn();
    return nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t /*start*/, int64_t /*duration*/,
                                                                 const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& /*config*/) override {
    // Kineto calls this on its own thread, for a profile that another process requested.
    return wanted.count(ActivityType::PRIVATEUSE1_RUNTIME) == 0 ? nullptr : std::make_unique<SilentProfilerSession>();
  }

 private:
  const std::string name_ = "openreg";
  const std::set<ActivityType> activities_ = {ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace

void bind_profiler(py::module_& module) {
  module.def("_register_silent_profiler", [] {
    auto& registry = torch::profiler::impl::PrivateUse1ProfilerRegistry::instance();
    if (!registry.hasFactory()) {
      registry.registerFactory([] { return std::make_unique<SilentProfiler>(); });
    }
  });
}

}  // namespace openreg::runtime
