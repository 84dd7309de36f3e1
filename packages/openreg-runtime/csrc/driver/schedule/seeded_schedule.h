// SPDX-License-Identifier: BSD-3-Clause
// The schedule that a seed selects (OPENREG_SCHEDULE_SEED).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/lock.h"
#include "engine/engine.h"
#include "objects/stream.h"
#include "observe/task_tracer.h"
#include "schedule/command_processor.h"
#include "schedule/deferred_schedule.h"
#include "schedule/semaphores.h"
#include "time/seeded_order.h"
#include "time/timer_queue.h"

namespace openreg::driver {

// A schedule whose order follows from the program and the seed. Guarded by the scheduler's mutex.
class SeededSchedule final : public DeferredSchedule {
 public:
  SeededSchedule(SeededOrder& order, Engine& engine, TimerQueue& timer_queue, Semaphores& semaphores,
                 CommandProcessor& processor, TaskTracer& tracer)
      : DeferredSchedule(engine),
        order_(order),
        timer_queue_(timer_queue),
        semaphores_(semaphores),
        processor_(processor),
        tracer_(tracer) {}

  Stream* next() override;
  // Advances the clock by a duration from a subscriber or the seed.
  void advance_clock(const Stream& stream, const Task& task, TaskResult& result) override;
  // Returns the time until a request has waited too long.
  uint64_t longest_sleep() const override;
  // Runs one task.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) override;
  bool has_backlog() const override;
  void after_submit(Lock& lock) override;
  // Wakes the engine, because a semaphore was signaled or has failed; the engine acts when its turn has come.
  void note_signal() { engine_.wake(); }

 private:
  void request_ended() override;
  bool take_signal();
  bool had_expired(uint64_t begin) const;
  bool has_stalled() const;
  void pass_time(uint64_t nanoseconds);

  SeededOrder& order_;
  TimerQueue& timer_queue_;
  Semaphores& semaphores_;
  CommandProcessor& processor_;
  TaskTracer& tracer_;
  uint64_t looked_at_ = 0;   // time of the last call of next(), in nanoseconds of the steady clock
  uint64_t active_at_ = 0;   // time of the last launch or wait of a thread that decides the order
  uint64_t blocked_by_ = 0;  // number of the first semaphore wait that blocks a request, since `blocked_since_`
  uint64_t blocked_since_ = 0;
  size_t polls_ = 0;  // consecutive queries for which no task could run
};

// Returns a thread-local flag, for reading and writing, that is true on threads that drive communication
// (orThreadSetProgress()).
bool& is_progress_thread();

}  // namespace openreg::driver
