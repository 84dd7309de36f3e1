// SPDX-License-Identifier: BSD-3-Clause
// Decides what an engine runs next, runs it, and draws the consequences.
#pragma once

#include <cstdint>

#include "clock.h"
#include "command_processor.h"
#include "engine_work.h"
#include "lock.h"
#include "seeded_schedule.h"
#include "semaphores.h"
#include "stream.h"
#include "task_tracer.h"

namespace openreg::driver {

// Between ready streams by priority, then in the order in which they became ready, or, when a seed is set, as the seed
// says. Guarded by the scheduler's mutex, which it gives up while a task runs.
class Dispatcher final : public EngineWork {
 public:
  // `seeded` is null without a seed.
  Dispatcher(CommandProcessor& processor, Semaphores& semaphores, TaskTracer& tracer, const Clock& clock,
             SeededSchedule* seeded)
      : processor_(processor), semaphores_(semaphores), tracer_(tracer), clock_(clock), seeded_(seeded) {}

  Stream* next(Engine& engine) override;
  void run(Engine& engine, Stream& stream, Lock& lock) override;
  uint64_t longest_sleep() override;
  void end_delay(Stream& stream) override;

 private:
  CommandProcessor& processor_;
  Semaphores& semaphores_;
  TaskTracer& tracer_;
  const Clock& clock_;
  SeededSchedule* const seeded_;
};

}  // namespace openreg::driver
