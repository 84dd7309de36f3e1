// SPDX-License-Identifier: BSD-3-Clause
// The two classes that Kineto, the library of torch.profiler, calls: a profiler that creates one session per profile,
// and the session (source: libkineto::IActivityProfiler, libkineto::IActivityProfilerSession).
//
// This file reports problems as Python warnings, because Kineto neither catches exceptions of a session nor shows
// its errors.
#include "activity_profiler.h"

#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <torch/csrc/utils/pybind.h>

#include <mutex>

#include "openreg/runtime/device.h"
#include "trace.h"

namespace openreg::profiler {

namespace {

using libkineto::ActivityType;

// Returns the name of a device and its place in the list of a trace.
libkineto::DeviceInfo device_info(int index) {
  const std::string name = "openreg:" + std::to_string(index);
  return {index, libkineto::kExceedMaxPid + index, name, name};
}

// Calls a function of openreg_profiler._warnings with the GIL. Does nothing after the interpreter is finalized. Reports
// a Python exception, such as a warning that is configured as an error, as unraisable, because Kineto does not catch
// it.
template <class... Arguments>
void call_python(const char* function, const Arguments&... arguments) {
  if (Py_IsInitialized() == 0) {
    return;
  }
  const pybind11::gil_scoped_acquire gil;
  try {
    // The destructor of a trace is called by the garbage collector in any frame, also of code without built-ins, such
    // as that by which collections.namedtuple makes a class. An import there would find no __import__.
    const auto modules = pybind11::reinterpret_borrow<pybind11::dict>(PyImport_GetModuleDict());
    modules["openreg_profiler._warnings"].attr(function)(arguments...);
  } catch (pybind11::error_already_set& error) {
    error.discard_as_unraisable("openreg_profiler");
  }
}

// An element of Kineto's buffers that owns the trace, so that the trace lives as long as the buffers of the profile.
class TraceHolder final : public libkineto::GenericTraceActivity {
 public:
  TraceHolder(std::shared_ptr<const Trace> trace, uint64_t recording)
      : trace_(std::move(trace)), recording_(recording) {}
  TraceHolder(const TraceHolder&) = delete;
  TraceHolder& operator=(const TraceHolder&) = delete;
  ~TraceHolder() override { call_python("note_end_of_trace", recording_); }

 private:
  const std::shared_ptr<const Trace> trace_;
  const uint64_t recording_;
};

// One profile of the openreg devices. Kineto calls start(), stop() and the functions that return results from one
// thread at a time. It calls the push and pop functions concurrently, from every thread that runs operators.
class ActivityProfilerSession final : public libkineto::IActivityProfilerSession {
 public:
  explicit ActivityProfilerSession(std::set<ActivityType> wanted) : wanted_(std::move(wanted)) {}
  ActivityProfilerSession(const ActivityProfilerSession&) = delete;
  ActivityProfilerSession& operator=(const ActivityProfilerSession&) = delete;
  // Stops the recording and warns if no trace was built, because then another thread has begun a profile before this
  // one ended.
  ~ActivityProfilerSession() override {
    stop();
    if (recorder_ != nullptr && trace_ == nullptr) {
      call_python("warn_of_replaced_profile");
    }
  }

  void start() override {
    try {
      begin_ = sample_clocks();
      recorder_ = ActivityRecorder::start();
      number_ = recorder_->number();
    } catch (const c10::Error& error) {
      report(error.what_without_backtrace());
    }
  }

  void stop() override {
    if (recorder_ == nullptr || is_stopped_) {
      return;
    }
    is_stopped_ = true;
    const std::string problem = recorder_->stop();
    end_ = sample_clocks();
    if (!problem.empty()) {
      report(problem);
      recorder_.reset();
    } else {
      call_python("note_stop", number_);
    }
  }

  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger& logger) override { processTrace(logger, nullptr, 0, 0); }

  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback find, int64_t /*begin*/,
                    int64_t /*end*/) override {
    if (recorder_ == nullptr) {
      return;
    }
    trace_ = std::make_shared<Trace>(recorder_, begin_, end_);
    trace_->build(wanted_, annotations_, find);
    for (const Activity& activity : trace_->activities()) {
      activity.log(logger);
    }
    // getDeviceInfo() can return only one device.
    for (const int index : trace_->devices()) {
      if (index != 0) {
        logger.handleDeviceInfo(device_info(index), begin_.unix);
      }
    }
    if (trace_->skipped() > 0) {
      report(std::to_string(trace_->skipped()) +
             " tasks were not run, because their device had failed before; they are not in the trace");
    }
  }

  // Returns the first device. Without a device, Kineto would list sixteen GPUs.
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(device_info(0));
  }

  // Returns the elements of a JSON array, in the format of CUDA's device properties.
  std::string getDeviceProperties() override {
    std::string json;
    for (int index = 0; recorder_ != nullptr && index < runtime::device_count(); ++index) {
      orDeviceProp properties{};
      if (orGetDeviceProperties(&properties, index) != orSuccess) {
        orGetLastError();
        continue;
      }
      json += json.empty() ? "" : ", ";
      json += "{\"id\": " + std::to_string(index) + ", \"name\": \"" + device_info(index).name +
              "\", \"totalGlobalMem\": " + std::to_string(properties.totalGlobalMem) + "}";
    }
    return json;
  }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    return trace_ == nullptr ? std::vector<libkineto::ResourceInfo>{} : trace_->streams();
  }

  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    if (trace_ == nullptr) {
      return nullptr;
    }
    auto buffer = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer->span = libkineto::TraceSpan(begin_.unix, end_.unix, "openreg");
    buffer->gpuOpCount = static_cast<int>(trace_->activities().size());
    buffer->activities.push_back(std::make_unique<TraceHolder>(trace_, number_));
    return buffer;
  }

  void pushCorrelationId(uint64_t id) override { push_operator_id(number_, static_cast<int32_t>(id)); }
  void popCorrelationId() override { pop_id(number_); }
  void pushUserCorrelationId(uint64_t id) override {
    const auto number = static_cast<int32_t>(id);
    if (const int32_t around = push_annotation_id(number_, number)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      annotations_.emplace(number, around);
    }
  }
  void popUserCorrelationId() override { pop_id(number_); }

 private:
  void report(const std::string& problem) {
    errors_.push_back(problem);
    call_python("warn_of_incomplete_profile", problem);
  }

  const std::set<ActivityType> wanted_;
  ClockSample begin_{};
  ClockSample end_{};
  std::shared_ptr<ActivityRecorder> recorder_;  // null before start(), and if start() or stop() failed
  uint64_t number_ = 0;
  bool is_stopped_ = false;
  std::shared_ptr<Trace> trace_;
  std::mutex mutex_;  // guards annotations_ until stop()
  Annotations annotations_;
  std::vector<std::string> errors_;
};

// The profiler of the openreg devices, from which Kineto gets a session for each profile.
class ActivityProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activities_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& /*config*/) override {
    return session(wanted);
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t /*start*/, int64_t /*duration*/,
                                                                 const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& /*config*/) override {
    // Kineto calls this on its own thread, for a profile that another process requests.
    return session(wanted);
  }

 private:
  // Returns null for a profile without activities of the device, because Kineto calls configure() for every profile.
  // PRIVATEUSE1_RUNTIME does not count, because profiles of the CPU alone request it, too.
  static std::unique_ptr<libkineto::IActivityProfilerSession> session(const std::set<ActivityType>& wanted) {
    for (const ActivityType type : {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, ActivityType::GPU_MEMSET,
                                    ActivityType::GPU_USER_ANNOTATION}) {
      if (wanted.count(type) != 0) {
        return std::make_unique<ActivityProfilerSession>(wanted);
      }
    }
    return nullptr;
  }

  const std::string name_ = "openreg";
  const std::set<ActivityType> activities_ = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                              ActivityType::GPU_MEMSET, ActivityType::GPU_USER_ANNOTATION,
                                              ActivityType::PRIVATEUSE1_RUNTIME};
};

}  // namespace

void register_activity_profiler() {
  auto& registry = torch::profiler::impl::PrivateUse1ProfilerRegistry::instance();
  TORCH_CHECK(!registry.hasFactory(),
              "PyTorch has a profiler for ProfilerActivity.PrivateUse1 already, and takes no second one. Import "
              "openreg_profiler in a process that registers no other.");
  registry.registerFactory([] { return std::make_unique<ActivityProfiler>(); });
}

}  // namespace openreg::profiler
