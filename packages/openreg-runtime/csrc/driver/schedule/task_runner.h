// SPDX-License-Identifier: BSD-3-Clause
// TaskRunner selects and executes tasks for the threads of the engines. It then passes the stream of each to the
// CommandProcessor, which removes the complete task.
#pragma once

#include <cstdint>

#include "base/lock.h"
#include "engine/engine_client.h"
#include "objects/stream.h"
#include "observe/task_tracer.h"
#include "schedule/command_processor.h"
#include "schedule/deferred_schedule.h"
#include "schedule/semaphores.h"

namespace openreg::driver {

// The part of the scheduler that selects an engine's next task, executes it and records the result. It serves the ready
// streams by priority, then in the order in which they became ready; while tasks are deferred (executed only while the
// host waits), the DeferredSchedule selects instead. Guarded by the scheduler's mutex, which run() releases while the
// task is executed.
class TaskRunner final : public EngineClient {
 public:
  // `deferred_schedule` is a reference to the caller's pointer; the pointer is null unless tasks are deferred, and
  // changes only while all queues are empty.
  TaskRunner(CommandProcessor& processor, Semaphores& semaphores, TaskTracer& tracer,
             DeferredSchedule* const& deferred_schedule)
      : processor_(processor), semaphores_(semaphores), tracer_(tracer), deferred_schedule_(deferred_schedule) {}

  // The functions of EngineClient, the interface that the threads of the engines call.
  Stream* next(Engine& engine) override;
  void run(Engine& engine, Stream& stream, Lock& lock) override;
  uint64_t longest_sleep() override;
  void end_delay(Stream& stream) override;

 private:
  CommandProcessor& processor_;
  Semaphores& semaphores_;
  TaskTracer& tracer_;
  DeferredSchedule* const& deferred_schedule_;
};

}  // namespace openreg::driver
