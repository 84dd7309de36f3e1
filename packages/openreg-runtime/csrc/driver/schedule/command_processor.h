// SPDX-License-Identifier: BSD-3-Clause
// CommandProcessor appends tasks to streams and advances the streams: it passes the head of each stream, its oldest
// task, to the part of the scheduler that completes the head, and then removes the complete head.
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

// The part of the scheduler that advances streams, as the command processor of a GPU does. Engines complete kernels,
// copies, fills and host functions, the timer queue completes delays (in simulated time, they are complete at once),
// and signals and other streams complete waits. The command processor completes event records itself, and executes no
// task. Guarded by the scheduler's mutex, which it never releases.
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

  // Appends a task to a stream, and advances the stream if it was idle. Does not check the capacity of the stream's
  // queue; the Scheduler waits for room before it calls this. Returns the task's ticket (sequence number in its
  // stream). `operands` are those of its launch; `replay` refers to the graph node that it replays.
  uint64_t enqueue(Stream& stream, const Task& task, const OperandSpan& operands = {},
                   const GraphNodeRef& replay = {}) {
    const uint64_t ticket = append(stream, task, operands, replay);
    if (!stream.busy) {
      advance(stream);
      settle();
    }
    return ticket;
  }
  // Appends a copy to an idle stream, but passes it to no engine: the caller executes it, and then calls complete().
  // Returns the ticket.
  uint64_t enqueue_for_caller(Stream& stream, const Task& task) {
    const uint64_t ticket = append(stream, task, {}, {});
    stream.busy = true;
    tracer_.reached_head(stream.queue.front());
    return ticket;
  }
  // Removes the head of a busy stream (one whose head was passed on), which is complete, then advances the stream and
  // those that waited for the head.
  void complete(Stream& stream);
  // Completes the heads of all streams in the list of completions, and advances these streams likewise.
  void settle();

  // Returns true if faults are injected, so that each copy, fill and kernel has to be counted for them.
  bool injects_faults() const { return faults_.armed(); }
  // Returns the number of tasks in all queues.
  size_t pending() const { return pending_; }

 private:
  uint64_t append(Stream& stream, const Task& task, const OperandSpan& operands, const GraphNodeRef& replay) {
    Task& entry = stream.queue.push(task);
    if (injects_faults()) [[unlikely]] {
      inject_fault(stream, entry);
    }
    ++pending_;
    const uint64_t ticket = ++stream.submitted;
    tracer_.submitted(stream, entry, operands, replay);
    if (simulated_time_.is_on()) [[unlikely]] {
      simulated_time_.enqueue(stream, tracer_.host_time(stream, entry));
      tracer_.launched(entry, simulated_time_.host());
    }
    return ticket;
  }
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
  size_t pending_ = 0;  // number of tasks in all queues
};

}  // namespace openreg::driver
