// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: firmware of the device selects the tasks, and the driver reads their results after an interrupt.
#include "schedule/task_runner.h"

#include <string>
#include <utility>

#include "engine/execute.h"

namespace openreg::driver {

Stream* TaskRunner::next(Engine& engine) {
  if (deferred_schedule_ == nullptr) {
    return engine.ready().pop();
  }
  return engine.index() == kCompute ? deferred_schedule_->next() : nullptr;
}

void TaskRunner::run(Engine& engine, Stream& stream, Lock& lock) {
  const Task task = stream.queue.front();
  Device& device = *stream.device;
  const bool skip = device.failed;
  engine.begin(stream);
  TaskResult result;
  result.begin = engine.running_since();
  lock.unlock();
  if (is_engine_thread()) {
    current_device() = device.index;  // that of a host thread is the program's
  }
  Counters counters;
  std::string failure = execute(task, skip, counters);
  acquire(lock);
  counters.busy_nanoseconds = engine.end(result.end);
  stream.counters.add(counters);
  device.counters.add(counters);
  device.busy.add(engine.running_since(), result.end);
  if (skip || !failure.empty()) {
    const bool loses_device = !skip && task.injected == Task::Injected::kDeviceLoss;
    result.status = loses_device || (skip && device.lost) ? orErrorDeviceLost : orErrorLaunchFailure;
    if (!failure.empty() && !device.failed) {
      device.lost = loses_device;
      semaphores_.fail_device(device, std::move(failure));
    }
  }
  result.engine = engine.index();
  result.skipped = skip;
  if (deferred_schedule_ != nullptr) {
    deferred_schedule_->advance_clock(stream, task, result);
  }
  tracer_.executed(task, result);
  processor_.complete(stream);
}

uint64_t TaskRunner::longest_sleep() {
  return deferred_schedule_ != nullptr ? deferred_schedule_->longest_sleep() : 0;
}

void TaskRunner::end_delay(Stream& stream) {
  processor_.complete(stream);
}

}  // namespace openreg::driver
