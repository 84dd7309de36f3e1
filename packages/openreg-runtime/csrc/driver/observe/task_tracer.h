// SPDX-License-Identifier: BSD-3-Clause
// Tells observers of tasks, and of what orders them.
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

// Turns the driver's own structures into those of openreg.h. Does nothing, at the cost of one comparison, for a task
// that nobody has seen. Guarded by the scheduler's mutex.
class TaskTracer {
 public:
  TaskTracer(SubscriberList& observers, const AddressSpace& space, const Clock& clock)
      : subscribers_(observers), space_(space), clock_(clock) {}

  // The stream's newest entry, with what its launch says that it reads and writes.
  void submitted(Stream& stream, Task& task, const OperandSpan& operands, const GraphNodeRef& replay) {
    if (subscribers_.any()) [[unlikely]] {
      notify_submitted(stream, task, operands, replay);
    }
  }
  // A capturing stream has recorded it, as the node of that number.
  void captured(const Stream& stream, const Task& task, const OperandSpan& operands, uint64_t node) {
    if (subscribers_.any()) [[unlikely]] {
      notify_captured(stream, task, operands, node);
    }
  }
  // The entry has come to the head of its queue.
  void reached_head(const Task& task) {
    if (task.observation != 0) [[unlikely]] {
      subscribers_.result(task.observation).begin = clock_.time();
    }
  }
  // An engine is done with the stream's head.
  void executed(const Task& task, const TaskResult& result) {
    if (task.observation != 0) [[unlikely]] {
      TaskResult& own = subscribers_.result(task.observation);
      const uint64_t launched = own.launched;
      own = result;
      own.launched = launched;
    }
  }
  // The stream's newest entry was enqueued at that time, and not when submitted() was called.
  void launched(const Task& task, uint64_t time) {
    if (task.observation != 0) {
      subscribers_.result(task.observation).launched = time;
    }
  }
  // The wait failed.
  void failed(const Task& task) {
    if (task.observation != 0) {
      subscribers_.result(task.observation).status = orErrorLaunchFailure;
    }
  }
  // The stream's head is done and about to be taken off.
  void completed(const Stream& stream, const Task& task) {
    if (task.observation != 0) [[unlikely]] {
      notify_completed(stream, task);
    }
  }
  // How long the head shall take, in nanoseconds, if an observer has an answer: true then; else leaves the value alone.
  bool duration(const Stream& stream, const Task& task, uint64_t& nanoseconds);
  // What the observer that keeps the time says: which engine of its chip runs the head, and how long the host took to
  // enqueue the newest entry. Nothing, where it has not seen it.
  int engine(const Stream& stream, const Task& task);
  uint64_t host_time(const Stream& stream, const Task& task);

  // What orders streams and the host: by no ticket of a stream when nothing is marked.
  void sync(orSyncKind kind, const Device& device, const Stream* stream, uint64_t ticket, orEvent_t event = nullptr,
            const Stream* waiting = nullptr) {
    if (subscribers_.any()) [[unlikely]] {
      notify_sync(kind, device, stream, ticket, event, waiting);
    }
  }
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
