// SPDX-License-Identifier: BSD-3-Clause
// TaskTracer reports tasks and synchronization to the subscribers of the driver (profilers and other observers).
#pragma once

#include <cstdint>

#include "memory/address_space.h"
#include "objects/device.h"
#include "objects/stream.h"
#include "objects/timeline_semaphore.h"
#include "observe/subscriber_list.h"
#include "openreg.h"
#include "time/clock.h"

namespace openreg::driver {

// A converter from the driver's types to the types of openreg.h, which it passes to the SubscriberList. The scheduler
// calls it at each step of a task. Without subscribers, a call costs one comparison. The head of a stream is its oldest
// task that is not complete. Guarded by the scheduler's mutex.
class TaskTracer {
 public:
  TaskTracer(SubscriberList& subscribers, const AddressSpace& space, const Clock& clock)
      : subscribers_(subscribers), space_(space), clock_(clock) {}

  // Reports the stream's newest task. `operands` are those that its launch declared, and `replay` refers to the graph
  // node that it replays.
  void submitted(Stream& stream, Task& task, const OperandSpan& operands, const GraphNodeRef& replay) {
    if (subscribers_.any()) [[unlikely]] {
      notify_submitted(stream, task, operands, replay);
    }
  }
  // Reports a task that a capturing stream has recorded as node number `node` of a graph.
  void captured(const Stream& stream, const Task& task, const OperandSpan& operands, uint64_t node) {
    if (subscribers_.any()) [[unlikely]] {
      notify_captured(stream, task, operands, node);
    }
  }
  // Records the current time as the time at which the task became the head of its stream.
  void reached_head(const Task& task) {
    if (task.observation != 0) [[unlikely]] {
      subscribers_.result(task.observation).begin = clock_.time();
    }
  }
  // Records the result of the stream's head, which an engine has executed or skipped.
  void executed(const Task& task, const TaskResult& result) {
    if (task.observation != 0) [[unlikely]] {
      TaskResult& own = subscribers_.result(task.observation);
      const uint64_t launched = own.launched;
      own = result;
      own.launched = launched;
    }
  }
  // Replaces the launch time of the stream's newest task. Without this call it is the time of submitted().
  void launched(const Task& task, uint64_t time) {
    if (task.observation != 0) {
      subscribers_.result(task.observation).launched = time;
    }
  }
  // Records that a semaphore wait has failed.
  void failed(const Task& task) {
    if (task.observation != 0) {
      subscribers_.result(task.observation).status = orErrorLaunchFailure;
    }
  }
  // Reports that the stream's head is complete. Must be called before the head is removed from the queue.
  void completed(const Stream& stream, const Task& task) {
    if (task.observation != 0) [[unlikely]] {
      notify_completed(stream, task);
    }
  }
  // Returns true and sets `nanoseconds` if a subscriber supplies the duration of the stream's head. Otherwise leaves
  // `nanoseconds` unchanged.
  bool duration(const Stream& stream, const Task& task, uint64_t& nanoseconds);
  // Returns the engine of the simulated chip that the time source selects for the stream's head. Returns
  // SimulatedTime::kNoEngine if the index is out of range or the task was not reported.
  int engine(const Stream& stream, const Task& task);
  // Returns the nanoseconds that the host spent enqueuing the stream's newest task, according to the time source.
  // Returns 0 if the task was not reported.
  uint64_t host_time(const Stream& stream, const Task& task);

  // Reports a synchronization with the tasks of `stream` up to `ticket` (sequence number in the stream), or with no
  // task if `stream` is null. `waiting` is the stream that waits. It is null if the host waits.
  void sync(orSyncKind kind, const Device& device, const Stream* stream, uint64_t ticket, orEvent_t event = nullptr,
            const Stream* waiting = nullptr) {
    if (subscribers_.any()) [[unlikely]] {
      notify_sync(kind, device, stream, ticket, event, waiting);
    }
  }
  // Reports that `value` was signaled, or that the stream `waiting` waits for it. `waiting` is null for a signal.
  void semaphore(orSyncKind kind, const TimelineSemaphore& semaphore, uint64_t value, const Stream* waiting) {
    if (subscribers_.any()) [[unlikely]] {
      notify_semaphore(kind, semaphore, value, waiting);
    }
  }

 private:
  void notify_submitted(Stream& stream, Task& task, const OperandSpan& operands, const GraphNodeRef& replay);
  void notify_captured(const Stream& stream, const Task& task, const OperandSpan& operands, uint64_t node);
  void notify_completed(const Stream& stream, const Task& task);
  void notify_sync(orSyncKind kind, const Device& device, const Stream* stream, uint64_t ticket, orEvent_t event,
                   const Stream* waiting);
  void notify_semaphore(orSyncKind kind, const TimelineSemaphore& semaphore, uint64_t value, const Stream* waiting);

  SubscriberList& subscribers_;
  const AddressSpace& space_;
  const Clock& clock_;
};

}  // namespace openreg::driver
