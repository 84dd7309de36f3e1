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

// Of the streams whose heads are ready that runs whose head can begin first; of several the one of the highest
// priority, then the one that was enqueued first. Nothing that is not ready yet can begin before it, for that waits for
// one of these. Guarded by the scheduler's mutex.
class SimulatedSchedule final : public DeferredSchedule {
 public:
  SimulatedSchedule(Engine& engine, SimulatedTime& time, const CommandProcessor& processor, TaskTracer& tracer)
      : DeferredSchedule(engine), time_(time), processor_(processor), tracer_(tracer) {}

  Stream* next() override;
  void advance_clock(const Stream& stream, const Task& task, TaskResult& result) override;
  // Lets run what has begun by the host's clock. Where a program polls, the clock goes on.
  bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) override;
  bool has_backlog() const override;
  // The same: whatever the host does later, it comes after that.
  void after_submit(Lock& lock) override;

 private:
  struct Choice {
    Stream* stream = nullptr;
    uint64_t start = 0;
  };

  Choice choose() const;
  // Whether something could run that has begun by the host's clock.
  bool has_begun() const;
  // Whether somebody waits for a ticket, and not only for what has begun.
  bool is_waited_for() const;
  void run_started_tasks(Lock& lock);

  SimulatedTime& time_;
  const CommandProcessor& processor_;
  TaskTracer& tracer_;
  size_t polls_ = 0;  // queries in a row that were told "not ready"
};

}  // namespace openreg::driver
