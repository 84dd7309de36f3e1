// SPDX-License-Identifier: BSD-3-Clause
// The advance of the streams' queues: what completes the head of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/faults.h"
#include "engine/engines.h"
#include "objects/object_table.h"
#include "objects/stream.h"
#include "observe/task_tracer.h"
#include "schedule/completions.h"
#include "schedule/semaphores.h"
#include "time/clock.h"
#include "time/simulated_time.h"
#include "time/timer_queue.h"

namespace openreg::driver {

// The part of the scheduler that advances queues, FIFO within a stream. The head of a busy stream is with an engine or
// the timer queue, or waits for a semaphore or another stream. Executes no task itself. Guarded by the scheduler's
// mutex, which it never releases.
class CommandProcessor {
 public:
  CommandProcessor(ObjectTable& objects, Engines& engines, TimerQueue& timer_queue, Semaphores& semaphores,
                   TaskTracer& tracer, Faults& faults, const Clock& clock, SimulatedTime& simulated,
                   Completions& completions)
      : objects_(objects),
        engines_(engines),
        timer_queue_(timer_queue),
        semaphores_(semaphores),
        tracer_(tracer),
        faults_(faults),
        clock_(clock),
        simulated_time_(simulated),
        completions_(completions) {}
  CommandProcessor(const CommandProcessor&) = delete;
  CommandProcessor& operator=(const CommandProcessor&) = delete;

  // Appends a task to a stream, without a limit on its queue, and advances the stream if it was idle. Returns the
  // task's ticket.
  uint64_t enqueue(Stream& stream, const Task& task, const OperandSpan& operands = {},
                   const GraphNodeRef& replay = {}) {
    Task& entry = stream.queue.push(task);
    if (faults_.armed()) [[unlikely]] {
      inject_fault(stream, entry);
    }
    ++pending_;
    const uint64_t ticket = ++stream.submitted;
    tracer_.submitted(stream, entry, operands, replay);
    if (simulated_time_.is_on()) [[unlikely]] {
      simulated_time_.enqueue(stream, tracer_.host_time(stream, entry));
      tracer_.launched(entry, simulated_time_.host());
    }
    if (!stream.busy) {
      advance(stream);
      settle();
    }
    return ticket;
  }
  // Completes the head of a busy stream, then advances the stream and those that waited for it.
  void complete(Stream& stream);
  // Advances the streams in the list of completions, and those that waited for them.
  void settle();

  // Returns the number of tasks in all queues.
  size_t pending() const { return pending_; }

 private:
  void inject_fault(const Stream& stream, Task& task);
  void advance(Stream& stream);
  bool pass_head(Stream& stream, const Task& head);
  void take_off_head(Stream& stream);
  void advance_simulated_time(const Stream& stream, const Task& head);

  ObjectTable& objects_;
  Engines& engines_;
  TimerQueue& timer_queue_;
  Semaphores& semaphores_;
  TaskTracer& tracer_;
  Faults& faults_;
  const Clock& clock_;
  SimulatedTime& simulated_time_;
  Completions& completions_;
  size_t pending_ = 0;
};

}  // namespace openreg::driver
