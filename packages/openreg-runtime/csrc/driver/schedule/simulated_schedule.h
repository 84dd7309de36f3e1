// SPDX-License-Identifier: BSD-3-Clause
// SimulatedSchedule executes deferred tasks in the order in which another chip would begin them, according to the
// simulated time that a subscriber supplies (orSubscribeTime).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/lock.h"
#include "engine/engine.h"
#include "objects/stream.h"
#include "observe/task_tracer.h"
#include "schedule/command_processor.h"
#include "schedule/deferred_schedule.h"
#include "time/simulated_time.h"

namespace openreg::driver {

// A schedule that selects, among the ready streams, the one whose head (oldest task) begins first in simulated time; of
// those, the one of the highest priority, then the one whose head was enqueued first. A task that is not ready cannot
// begin earlier than the selected one, because it waits, directly or not, for a ready task or for a signal that the
// host has not sent. Guarded by the scheduler's mutex.
class SimulatedSchedule final : public DeferredSchedule {
 public:
  SimulatedSchedule(Engine& engine, SimulatedTime& time, const CommandProcessor& processor, TaskTracer& tracer)
      : DeferredSchedule(engine), time_(time), processor_(processor), tracer_(tracer) {}

  Stream* next() override;
  // Sets begin, end and engine of `result` in simulated time, in which stream and engine are busy until its end.
  void advance_clock(const Stream& stream, const Task& task, TaskResult& result) override;
  // Executes the tasks that begin no later than the host's time. `ticket` is the sequence number of a task in `stream`.
  // If the program polls (more than kPollThreshold queries in a row), also advances the host's time. Returns true,
  // because it may have released the mutex.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) override;
  bool has_backlog() const override;
  // If too many tasks are deferred, executes those that begin no later than the host's time. Tasks that the host
  // enqueues later cannot begin before these.
  void after_submit(Lock& lock) override;

 private:
  struct Choice {
    Stream* stream = nullptr;  // null if no stream is ready
    uint64_t start = 0;        // the time at which its head begins
  };

  Choice choose() const;
  // Returns true if a ready task begins no later than the host's time.
  bool has_begun() const;
  // Returns true if a thread waits for a ticket. Then tasks that begin after the host's time may be executed, too.
  bool is_waited_for() const;
  void run_started_tasks(Lock& lock);

  SimulatedTime& time_;
  const CommandProcessor& processor_;  // appends tasks to streams, and counts those that are pending
  TaskTracer& tracer_;
  size_t polls_ = 0;  // number of consecutive queries whose result was "not ready"
};

}  // namespace openreg::driver
