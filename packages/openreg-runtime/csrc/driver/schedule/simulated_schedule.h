// SPDX-License-Identifier: BSD-3-Clause
// The schedule of a chip whose time is simulated.
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

// A schedule that selects the ready stream whose head can begin first, then by priority, then by the order of
// enqueuing. A task that is not ready cannot begin earlier, because it waits for one that is ready. Guarded by the
// scheduler's mutex.
class SimulatedSchedule final : public DeferredSchedule {
 public:
  SimulatedSchedule(Engine& engine, SimulatedTime& time, const CommandProcessor& processor, TaskTracer& tracer)
      : DeferredSchedule(engine), time_(time), processor_(processor), tracer_(tracer) {}

  Stream* next() override;
  void advance_clock(const Stream& stream, const Task& task, TaskResult& result) override;
  // Runs the tasks that have begun by the host's clock. If the program polls, also advances that clock.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) override;
  bool has_backlog() const override;
  // Runs the tasks that have begun by the host's clock if too many tasks are deferred. Whatever the host does later
  // comes after them.
  void after_submit(Lock& lock) override;

 private:
  struct Choice {
    Stream* stream = nullptr;
    uint64_t start = 0;
  };

  Choice choose() const;
  // Returns true if a ready task begins no later than the host's time.
  bool has_begun() const;
  // Returns true if a thread waits for a ticket, and not only for tasks that have begun.
  bool is_waited_for() const;
  void run_started_tasks(Lock& lock);

  SimulatedTime& time_;
  const CommandProcessor& processor_;
  TaskTracer& tracer_;
  size_t polls_ = 0;  // consecutive queries that returned "not ready"
};

}  // namespace openreg::driver
