// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: a scheduler in firmware; the driver reads from the interrupt what went how.
#include "schedule/dispatcher.h"

#include <utility>

#include "engine/execute.h"

namespace openreg::driver {

Stream* Dispatcher::next(Engine& engine) {
  if (held_back_ == nullptr) {
    return engine.ready().pop();
  }
  return engine.index() == kCompute ? held_back_->next() : nullptr;
}

void Dispatcher::run(Engine& engine, Stream& stream, Lock& lock) {
  const Task task = stream.queue.front();
  Device& device = *stream.device;
  const bool skip = device.failed;
  engine.begin(stream);
  Outcome outcome;
  outcome.begin = engine.running_since();
  lock.unlock();
  current_device() = device.index;
  Counters counters;
  Failure failure = execute(task, skip, counters);
  acquire(lock);
  counters.busy_nanoseconds = engine.end(outcome.end);
  stream.counters.add(counters);
  device.counters.add(counters);
  device.busy.add(engine.running_since(), outcome.end);
  if (skip || !failure.text.empty()) {
    outcome.status = failure.device_lost || (skip && device.lost) ? orErrorDeviceLost : orErrorLaunchFailure;
  }
  if (!failure.text.empty() && !device.failed) {
    device.lost = failure.device_lost;
    semaphores_.fail_device(device, std::move(failure.text));
  }
  outcome.engine = engine.index();
  outcome.skipped = skip;
  if (held_back_ != nullptr) {
    held_back_->pass_duration(stream, task, outcome);
  }
  tracer_.executed(task, outcome);
  processor_.complete(stream);
}

uint64_t Dispatcher::longest_sleep() {
  return held_back_ != nullptr ? held_back_->longest_sleep() : 0;
}

void Dispatcher::end_delay(Stream& stream) {
  processor_.complete(stream);
}

}  // namespace openreg::driver
