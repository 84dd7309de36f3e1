// SPDX-License-Identifier: BSD-3-Clause
// The execution of tasks on behalf of the engine threads.
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

// The part of the scheduler that selects an engine's next task, executes it and records the result. Ready streams are
// served by priority, then in the order in which they became ready, or as a deferred schedule selects. Guarded by the
// scheduler's mutex, which run() releases while the task executes.
class TaskRunner final : public EngineClient {
 public:
  // `deferred_schedule` is null while tasks are not deferred. It changes while all queues are empty.
  TaskRunner(CommandProcessor& processor, Semaphores& semaphores, TaskTracer& tracer,
             DeferredSchedule* const& deferred_schedule)
      : processor_(processor), semaphores_(semaphores), tracer_(tracer), deferred_schedule_(deferred_schedule) {}

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
