// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: records come from a ring that the command processor fills, long after the launch, and are put together with
// what the driver knows of the launch.
#include "recorder.h"

#include <ThreadUtil.h>
#include <torch/csrc/utils/pybind.h>

#include "clock.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"

namespace openreg::profiler {

namespace {

// Set when the process is about to end: from then on nothing is noted, and nothing that could be noted into is freed.
std::atomic<bool>& is_abandoned() {
  static std::atomic<bool> value{false};
  return value;
}

std::atomic<int>& running() {
  static std::atomic<int> count{0};
  return count;
}

uint64_t next_number() {
  static std::atomic<uint64_t> newest{0};
  return ++newest;
}

// Ending a subscription waits for kernels, of which one may need Python.
template <class Call>
auto without_gil(Call&& call) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    const pybind11::gil_scoped_release release;
    return call();
  }
  return call();
}

}  // namespace

Recorder::Recorder() : number_(next_number()), process_(libkineto::processId(/*cache=*/false)) {}

std::shared_ptr<Recorder> Recorder::start() {
  runtime::ensure_initialized();
  // Freed only after a stop that has succeeded; see the class.
  const std::shared_ptr<Recorder> recorder(new Recorder, [](Recorder* self) {
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

std::string Recorder::stop() {
  if (subscription_ == nullptr) {
    return "";
  }
  if (is_abandoned()) {
    return "the process ends while it runs, and what it recorded is lost. Stop it before";
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

void Recorder::abandon_all() noexcept {
  is_abandoned() = true;
}

bool Recorder::is_any_running() noexcept {
  return running() > 0;
}

const std::string* Recorder::keep(const char* name) {
  const std::string_view text = name == nullptr ? "kernel" : name;
  const auto found = names_.find(text);
  return &*(found != names_.end() ? found : names_.emplace(text).first);
}

void Recorder::on_submit(void* user, const orTaskInfo* info, uint64_t* correlation) {
  *correlation = 0;
  // A record of an event is a mark that takes no time.
  if (is_abandoned() || info->kind == orTaskEventRecord) {
    return;
  }
  const uint64_t launched = steady_now();
  auto& self = *static_cast<Recorder*>(user);
  Task& task = self.tasks_.emplace_back();
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
  task.origin = current_origin(self.number_);
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

void Recorder::on_complete(void* /*user*/, const orTaskCompletion* completion) {
  if (is_abandoned() || completion->correlation == 0) {
    return;
  }
  Task& task = *reinterpret_cast<Task*>(completion->correlation);
  task.begin = completion->begin;
  task.end = completion->end;
  task.engine = static_cast<int8_t>(completion->engine);
  task.has_failed = completion->status != orSuccess;
  task.was_skipped = completion->skipped != 0;
  task.is_done = true;
}

void Recorder::on_memory(void* user, const orMemoryInfo* info) {
  if (is_abandoned() || (info->action != orMemoryReleased && info->action != orMemoryClosed)) {
    return;
  }
  const auto* begin = static_cast<const char*>(info->address);
  static_cast<Recorder*>(user)->released_.push_back({info->type, info->device, begin, begin + info->size});
}

}  // namespace openreg::profiler
