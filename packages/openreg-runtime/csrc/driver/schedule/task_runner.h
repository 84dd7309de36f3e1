// SPDX-License-Identifier: BSD-3-Clause
// Decides what an engine runs next, runs it, and draws the consequences.
#pragma once

#include <cstdint>

#include "base/lock.h"
#include "engine/engine_work.h"
#include "objects/stream.h"
#include "observe/task_tracer.h"
#include "schedule/command_processor.h"
#include "schedule/held_back.h"
#include "schedule/semaphores.h"

namespace openreg::driver {

// Between ready streams by priority, then in the order in which they became ready, or as a schedule says that holds
// work back. Guarded by the scheduler's mutex, which it gives up while a task runs.
class Dispatcher final : public EngineWork {
 public:
  // `held_back` is null while work is not held back; it changes while nothing is queued.
  Dispatcher(CommandProcessor& processor, Semaphores& semaphores, TaskTracer& tracer, HeldBack* const& held_back)
      : processor_(processor), semaphores_(semaphores), tracer_(tracer), held_back_(held_back) {}

  Stream* next(Engine& engine) override;
  void run(Engine& engine, Stream& stream, Lock& lock) override;
  uint64_t longest_sleep() override;
  void end_delay(Stream& stream) override;

 private:
  CommandProcessor& processor_;
  Semaphores& semaphores_;
  TaskTracer& tracer_;
  HeldBack* const& held_back_;
};

}  // namespace openreg::driver
