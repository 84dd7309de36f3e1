// SPDX-License-Identifier: BSD-3-Clause
// The reports of tasks and synchronization to subscribers.
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

// A converter of the driver's structures into those of openreg.h, which it passes to subscribers. A task that no
// subscriber has seen costs one comparison per call. Guarded by the scheduler's mutex.
class TaskTracer {
 public:
  TaskTracer(SubscriberList& observers, const AddressSpace& space, const Clock& clock)
      : subscribers_(observers), space_(space), clock_(clock) {}

  // Reports the stream's newest task, with the operands of its launch.
  void submitted(Stream& stream, Task& task, const OperandSpan& operands, const GraphNodeRef& replay) {
    if (subscribers_.any()) [[unlikely]] {
      notify_submitted(stream, task, operands, replay);
    }
  }
  // Reports a task that a capturing stream has recorded as node number `node`.
  void captured(const Stream& stream, const Task& task, const OperandSpan& operands, uint64_t node) {
    if (subscribers_.any()) [[unlikely]] {
      notify_captured(stream, task, operands, node);
    }
  }
  // Records the time at which the task became the head of its queue.
  void reached_head(const Task& task) {
    if (task.observation != 0) [[unlikely]] {
      subscribers_.result(task.observation).begin = clock_.time();
    }
  }
  // Records the result of the stream's head, which an engine has executed.
  void executed(const Task& task, const TaskResult& result) {
    if (task.observation != 0) [[unlikely]] {
      TaskResult& own = subscribers_.result(task.observation);
      const uint64_t launched = own.launched;
      own = result;
      own.launched = launched;
    }
  }
  // Replaces the launch time of the stream's newest task, which is that of submitted() by default.
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
  // Reports that the stream's head is complete, before it is removed from the queue.
  void completed(const Stream& stream, const Task& task) {
    if (task.observation != 0) [[unlikely]] {
      notify_completed(stream, task);
    }
  }
  // Returns true and sets `nanoseconds` if a subscriber supplies the duration of the stream's head. Otherwise leaves
  // `nanoseconds` unchanged.
  bool duration(const Stream& stream, const Task& task, uint64_t& nanoseconds);
  // Returns the engine that the time source selects for the stream's head. Returns kNoEngine if the index is out of
  // range or the task was not reported.
  int engine(const Stream& stream, const Task& task);
  // Returns the nanoseconds that the host spent enqueuing the stream's newest task, according to the time source.
  // Returns 0 if the task was not reported.
  uint64_t host_time(const Stream& stream, const Task& task);

  // Reports a synchronization with `ticket` of `stream`, or with no task if `stream` is null. `waiting` is the stream
  // that waits; it is null for the host.
  void sync(orSyncKind kind, const Device& device, const Stream* stream, uint64_t ticket, orEvent_t event = nullptr,
            const Stream* waiting = nullptr) {
    if (subscribers_.any()) [[unlikely]] {
      notify_sync(kind, device, stream, ticket, event, waiting);
    }
  }
  // Reports a signal of `value`, or a wait of the stream `waiting` for it.
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
