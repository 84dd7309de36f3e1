// SPDX-License-Identifier: BSD-3-Clause
// Moves queues on: what is at the head of each stream, and who has to be done before it.
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

// FIFO within a stream. The head of a stream that is busy is with somebody: an engine, the timer queue, a semaphore, or
// another stream that it waits for. Guarded by the scheduler's mutex, which it never gives up; runs nothing itself.
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

  // Appends an entry to a stream, however long its queue is, and moves the stream on if it was idle. Returns the
  // entry's ticket.
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
  // The head of a busy stream is done.
  void complete(Stream& stream);
  // Moves the streams on whose heads are done, and those that waited for them.
  void settle();

  // Entries in all queues.
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
