// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: firmware of the device does this, with queues and semaphores in device memory. The driver writes to a
// doorbell register.
#include "schedule/command_processor.h"

#include <algorithm>
#include <limits>

namespace openreg::driver {

namespace {

// In bytes. A copy of this size takes longer than waking a sleeping engine, so that a second engine saves time.
constexpr size_t kCopyEngineThreshold = size_t{1} << 20;

}  // namespace

// Counts operations when they are enqueued, not when they are executed. With one launching thread, the n-th operation
// is therefore identical in each run.
void CommandProcessor::inject_fault(const Stream& stream, Task& task) {
  const bool is_kernel = task.kind == Task::Kind::kKernel && task.kernel.function != nullptr;
  if (!is_kernel && task.kind != Task::Kind::kCopy && task.kind != Task::Kind::kFill) {
    return;
  }
  const int device = stream.device->index;
  if (faults_.should_fail(is_kernel ? kLaunchFault : kCopyFault, device)) {
    task.injected = Task::Injected::kFailure;
  }
  if (faults_.should_fail(kLossFault, device)) {
    task.injected = Task::Injected::kDeviceLoss;
  }
}

// Completes tasks of the stream as far as that is possible without an engine. Afterwards its queue is empty, or its
// head was passed to an engine, the timer queue, a semaphore or another stream.
void CommandProcessor::advance(Stream& stream) {
  stream.busy = true;
  while (!stream.queue.empty()) {
    const Task& head = stream.queue.front();
    if (simulated_time_.is_on()) [[unlikely]] {
      simulated_time_.show(simulated_time_.earliest(stream));
    }
    tracer_.reached_head(head);
    if (!pass_head(stream, head)) {
      return;
    }
    take_off_head(stream);
  }
  stream.busy = false;
  if (!stream.alive) {
    objects_.recycle(stream);
  }
}

// Returns true if the head is complete already. Otherwise adds the stream to the engine, timer queue, semaphore or
// other stream that will complete the head.
bool CommandProcessor::pass_head(Stream& stream, const Task& head) {
  switch (head.kind) {
    case Task::Kind::kWait:
      if (head.wait.stream->completed >= head.wait.ticket) {
        return true;
      }
      head.wait.stream->waiters.push_back({&stream, head.wait.ticket});
      return false;
    case Task::Kind::kSemaphoreWait:
      return semaphores_.pass(stream, head.semaphore);
    case Task::Kind::kTimestamp:
      if (head.timestamp.event->record == head.timestamp.record) {
        head.timestamp.event->nanoseconds = clock_.time();
      }
      return true;
    case Task::Kind::kDelay: {
      if (stream.device->failed || simulated_time_.is_on()) {
        return true;
      }
      const uint64_t time = clock_.time();
      const uint64_t longest = std::numeric_limits<uint64_t>::max() - time;
      timer_queue_.add(time + std::min(head.delay, longest), stream);
      return false;
    }
    case Task::Kind::kCopy:
      engines_.serving(head.copy.size >= kCopyEngineThreshold ? kCopy : kCompute).make_ready(stream);
      return false;
    case Task::Kind::kKernel:
    case Task::Kind::kHostFunction:
    case Task::Kind::kFill:
      engines_.serving(kCompute).make_ready(stream);
      return false;
  }
  return true;
}

// Removes the head, which is complete. Adds the streams that waited for it to the list of completions, and wakes host
// threads.
void CommandProcessor::take_off_head(Stream& stream) {
  const Task& head = stream.queue.front();
  if (head.kind == Task::Kind::kSemaphoreWait) {
    Semaphores::drop_wait(head.semaphore);
  }
  if (simulated_time_.is_on()) [[unlikely]] {
    advance_simulated_time(stream, head);
  }
  tracer_.completed(stream, head);
  stream.queue.pop();
  --pending_;
  stream.completed.store(stream.completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (stream.completed >= stream.wake_at) {
    stream.wake_at = kNoWaiter;
    stream.progress.notify_all();
  }
  end_waits(stream.waiters, completions_, [&](const Waiter& waiter) { return waiter.value <= stream.completed; });
}

// Computes the time at which the head ends on the simulated chip. Among tasks that no engine executes, only delays and
// waits take time.
void CommandProcessor::advance_simulated_time(const Stream& stream, const Task& head) {
  uint64_t time = simulated_time_.earliest(stream);
  uint64_t nanoseconds = 0;
  switch (head.kind) {
    case Task::Kind::kWait:
      time = std::max(time, simulated_time_.end_of(*head.wait.stream, head.wait.ticket));
      break;
    case Task::Kind::kSemaphoreWait:
      time = tracer_.duration(stream, head, nanoseconds) ? SimulatedTime::later(time, nanoseconds)
                                                         : std::max(time, simulated_time_.host());
      break;
    case Task::Kind::kDelay:
      time = SimulatedTime::later(time, stream.device->failed ? 0 : head.delay);
      break;
    case Task::Kind::kTimestamp:
      break;
    case Task::Kind::kKernel:
    case Task::Kind::kHostFunction:
    case Task::Kind::kCopy:
    case Task::Kind::kFill:
      time = simulated_time_.ran_until(stream);
      break;
  }
  simulated_time_.complete(stream, time);
  simulated_time_.show(time);
}

void CommandProcessor::complete(Stream& stream) {
  if (!completions_.empty()) [[unlikely]] {
    completions_.push_back(&stream);  // after the streams that were added before it
  } else {
    take_off_head(stream);
    advance(stream);
  }
  settle();
}

void CommandProcessor::settle() {
  while (!completions_.empty()) {
    Stream& stream = *completions_.front();
    completions_.pop_front();
    take_off_head(stream);
    advance(stream);
  }
}

}  // namespace openreg::driver
