// SPDX-License-Identifier: BSD-3-Clause
// SeededSchedule executes deferred tasks in an order that follows from the number in OPENREG_SCHEDULE_SEED, so that a
// run with an unusual order of tasks can be repeated.
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

// A schedule whose order of tasks follows from the program and the seed alone, not from the speed of threads. Two
// things happen at times that depend on other processes, so the schedule limits their effect. A signal of a semaphore
// takes effect only when no task can be executed without it. A request of a progress thread (one that drives
// communication, orThreadSetProgress()) executes tasks only after all other threads have been inactive for a while, the
// timeout. The schedule waits no longer than that for a signal, either: without a limit some programs would block
// forever, because the signal comes only after a thread that is blocked has continued. If a timeout passes because a
// thread was slow, the order may be another one. Guarded by the scheduler's mutex.
class SeededSchedule final : public DeferredSchedule {
 public:
  // `timeout` is in nanoseconds.
  SeededSchedule(uint64_t timeout, SeededOrder& order, Engine& engine, TimerQueue& timer_queue, Semaphores& semaphores,
                 CommandProcessor& processor, TaskTracer& tracer)
      : DeferredSchedule(engine),
        timeout_(timeout),
        order_(order),
        timer_queue_(timer_queue),
        semaphores_(semaphores),
        processor_(processor),
        tracer_(tracer) {}

  Stream* next() override;
  // Advances the clock of the SeededOrder by a duration that a subscriber supplies, or else the seed.
  void advance_clock(const Stream& stream, const Task& task, TaskResult& result) override;
  // Returns the time after which next() must be called again, because the schedule waits no longer than the timeout for
  // a signal, or for the threads that are not progress threads, before it executes tasks without them.
  uint64_t longest_sleep() const override;
  // Executes one task, if any can be executed; ignores the ticket (sequence number of a task) unless the program polls.
  // On a progress thread, does nothing while other threads are active.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) override;
  bool has_backlog() const override;
  void after_submit(Lock& lock) override;
  // Wakes the engine, because a semaphore was signaled or has failed. The signal takes effect in a later call of
  // next().
  void note_signal() { engine_.wake(); }

 private:
  void request_ended() override;
  bool apply_signal();
  bool had_expired(uint64_t begin) const;
  bool has_stalled() const;
  void pass_time(uint64_t nanoseconds);

  const uint64_t timeout_;
  SeededOrder& order_;
  TimerQueue& timer_queue_;
  Semaphores& semaphores_;
  CommandProcessor& processor_;
  TaskTracer& tracer_;
  // The following times are in nanoseconds of the steady clock.
  uint64_t looked_at_ = 0;      // time of the newest next()
  uint64_t active_at_ = 0;      // time of the newest launch or wait of a thread that is not a progress thread
  uint64_t blocked_by_ = 0;     // number of the semaphore wait for whose signal the schedule waits
  uint64_t blocked_since_ = 0;  // time since which it waits for that signal
  size_t polls_ = 0;            // number of consecutive queries for which no task could be executed
};

// Returns a thread-local flag, for reading and writing, that is true on progress threads: threads that drive
// communication (orThreadSetProgress()).
bool& is_progress_thread();

}  // namespace openreg::driver
