// SPDX-License-Identifier: BSD-3-Clause
// Decides what an engine runs next, runs it, and draws the consequences.
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

// Between ready streams by priority, then in the order in which they became ready, or as a schedule says that holds
// work back. Guarded by the scheduler's mutex, which it gives up while a task runs.
class TaskRunner final : public EngineClient {
 public:
  // `deferred_schedule` is null while work is not held back; it changes while nothing is queued.
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
