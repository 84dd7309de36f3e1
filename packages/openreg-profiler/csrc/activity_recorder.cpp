// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the command processor writes records into a ring buffer long after the launch, and the profiler joins them
// with the driver's data about the launch.
#include "activity_recorder.h"

#include <ThreadUtil.h>
#include <torch/csrc/utils/pybind.h>

#include "clock.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"

namespace openreg::profiler {

namespace {

// Set when the process is about to exit. From then on callbacks record nothing, and subscriptions stay open, so that no
// recorder is freed.
std::atomic<bool>& is_abandoned() {
  static std::atomic<bool> value{false};
  return value;
}

// Returns the number of recordings that have begun and not ended.
std::atomic<int>& running() {
  static std::atomic<int> count{0};
  return count;
}

// Returns the number of a new recording, from 1 on.
uint64_t next_number() {
  static std::atomic<uint64_t> newest{0};
  return ++newest;
}

// Calls `call` without the GIL, because orUnsubscribe() waits for kernels, and a kernel written in Python needs the
// GIL.
template <class Call>
auto without_gil(Call&& call) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    const pybind11::gil_scoped_release release;
    return call();
  }
  return call();
}

}  // namespace

ActivityRecorder::ActivityRecorder() : number_(next_number()), process_(libkineto::processId(/*cache=*/false)) {}

std::shared_ptr<ActivityRecorder> ActivityRecorder::start() {
  runtime::ensure_initialized();
  // The deleter leaks a recorder whose subscription is open, because the driver may still call it.
  const std::shared_ptr<ActivityRecorder> recorder(new ActivityRecorder, [](ActivityRecorder* self) {
    if (self->subscription_ == nullptr) {
      delete self;
    }
  });
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.submit = &on_submit;
  table.complete = &on_complete;
  table.memory = &on_memory;
  OPENREG_CHECK(orSubscribe(&table, recorder.get(), &recorder->subscription_));
  ++running();
  return recorder;
}

std::string ActivityRecorder::stop() {
  if (subscription_ == nullptr) {
    return "";
  }
  if (is_abandoned()) {
    return "the process ends while the profile runs, and what it recorded is lost; stop it before the process ends";
  }
  if (libkineto::processId(/*cache=*/false) != process_) {
    return "this process was forked while the profile ran, and a forked child cannot use the device; stop the profile "
           "before the fork, or start the child with torch.multiprocessing.get_context(\"spawn\")";
  }
  const orError_t status = without_gil([&] { return orUnsubscribe(subscription_); });
  const bool is_over = status == orSuccess || status == orErrorIllegalState;
  const std::string problem = status == orSuccess ? "" : orGetLastErrorMessage();
  orGetLastError();
  if (is_over) {
    subscription_ = nullptr;
    --running();
  }
  return problem;
}

void ActivityRecorder::abandon_all() noexcept {
  is_abandoned() = true;
}

bool ActivityRecorder::is_any_running() noexcept {
  return running() > 0;
}

const std::string* ActivityRecorder::keep(const char* name) {
  const std::string_view text = name == nullptr ? "kernel" : name;
  const auto found = names_.find(text);
  return &*(found != names_.end() ? found : names_.emplace(text).first);
}

void ActivityRecorder::on_submit(void* user, const orTaskInfo* info, uint64_t* correlation) {
  *correlation = 0;
  // An event record is not in the trace, because it takes no time.
  if (is_abandoned() || info->kind == orTaskEventRecord) {
    return;
  }
  const uint64_t launched = steady_now();
  auto& self = *static_cast<ActivityRecorder*>(user);
  TaskRecord& task = self.tasks_.emplace_back();
  *correlation = reinterpret_cast<uintptr_t>(&task);
  task.launched = launched;
  task.bytes = info->bytes;
  task.ticket = info->ticket;
  task.graph_launch = info->graph_launch;
  task.kind = static_cast<uint8_t>(info->kind);
  task.device = static_cast<int16_t>(info->device);
  task.queue = info->queue;
  task.stream = info->stream;
  task.waited_queue = info->waited_queue;
  task.waited_ticket = info->kind == orTaskSemaphoreWait ? info->value : info->waited_ticket;
  task.ids = current_ids(self.number_);
  task.thread = libkineto::systemThreadId();
  if (info->kind == orTaskKernel) {
    task.name = self.keep(info->name);
  }
  if (info->kind == orTaskCopy || info->kind == orTaskFill) {
    for (size_t i = 0; i < info->operand_count; ++i) {
      const orOperand& operand = info->operands[i];
      (operand.access == orAccessRead ? task.source : task.destination) = operand.address;
    }
  }
  task.accepted = steady_now();
}

void ActivityRecorder::on_complete(void* /*user*/, const orTaskCompletion* completion) {
  if (is_abandoned() || completion->correlation == 0) {
    return;
  }
  TaskRecord& task = *reinterpret_cast<TaskRecord*>(completion->correlation);
  task.begin = completion->begin;
  task.end = completion->end;
  task.engine = static_cast<int8_t>(completion->engine);
  task.has_failed = completion->status != orSuccess;
  task.was_skipped = completion->skipped != 0;
  task.is_done = true;
}

void ActivityRecorder::on_memory(void* user, const orMemoryInfo* info) {
  if (is_abandoned() || (info->action != orMemoryReleased && info->action != orMemoryClosed)) {
    return;
  }
  const auto* begin = static_cast<const char*>(info->address);
  static_cast<ActivityRecorder*>(user)->freed_.push_back({info->type, info->device, begin, begin + info->size});
}

}  // namespace openreg::profiler
