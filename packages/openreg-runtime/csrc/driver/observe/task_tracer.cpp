// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver records the tasks that it enqueues, a tracing unit of the device records the times of their
// execution, and the driver matches both by number.
#include "observe/task_tracer.h"

#include <algorithm>
#include <array>

namespace openreg::driver {

namespace {

orTaskKind kind_of(const Task& task) {
  switch (task.kind) {
    case Task::Kind::kKernel:
      return orTaskKernel;
    case Task::Kind::kHostFunction:
      return orTaskHostFunction;
    case Task::Kind::kCopy:
      return orTaskCopy;
    case Task::Kind::kFill:
      return orTaskFill;
    case Task::Kind::kDelay:
      return orTaskDelay;
    case Task::Kind::kTimestamp:
      return orTaskEventRecord;
    case Task::Kind::kWait:
      return orTaskEventWait;
    case Task::Kind::kSemaphoreWait:
      return orTaskSemaphoreWait;
  }
  return orTaskKernel;
}

// Fills in the operands of a copy or a fill, whose task contains them. Returns their number.
size_t operands_of(const Task& task, const AddressSpace& space, std::array<orOperand, 2>& operands) {
  if (task.kind == Task::Kind::kFill) {
    operands[0] = {space.device_view(task.fill.destination), task.fill.size, orAccessWrite};
    return 1;
  }
  operands[0] = {space.device_view(task.copy.destination), task.copy.size, orAccessWrite};
  if (task.copy.staging != nullptr) {
    return 1;  // the source was read when the copy was enqueued
  }
  operands[1] = {space.device_view(task.copy.source), task.copy.size, orAccessRead};
  return 2;
}

orTaskInfo describe(const Stream& stream, const Task& task, uint64_t ticket) {
  orTaskInfo info{};
  info.kind = kind_of(task);
  info.device = stream.device->index;
  info.stream = handle_of(stream);
  info.queue = stream.index;
  info.ticket = ticket;
  switch (task.kind) {
    case Task::Kind::kKernel:
      info.name = task.kernel.name;
      break;
    case Task::Kind::kCopy:
      info.bytes = task.copy.size;
      break;
    case Task::Kind::kFill:
      info.bytes = task.fill.size;
      break;
    case Task::Kind::kWait:
      info.waited_queue = task.wait.stream->index;
      info.waited_ticket = task.wait.ticket;
      break;
    case Task::Kind::kSemaphoreWait:
      info.semaphore = handle_of(*task.semaphore.semaphore);
      info.value = task.semaphore.value;
      break;
    case Task::Kind::kTimestamp:
      info.event = handle_of(*task.timestamp.event);
      break;
    case Task::Kind::kHostFunction:
    case Task::Kind::kDelay:
      break;
  }
  return info;
}

// Sets what the task reads and writes. `own` is the memory for operands that the task itself contains.
void add_operands(orTaskInfo& info, const Task& task, const OperandSpan& operands, const AddressSpace& space,
                  std::array<orOperand, 2>& own) {
  if (task.kind == Task::Kind::kCopy || task.kind == Task::Kind::kFill) {
    info.operand_count = operands_of(task, space, own);
    info.operands = own.data();
  } else {
    info.operands = operands.data;
    info.operand_count = operands.count;
  }
}

}  // namespace

void TaskTracer::notify_submitted(Stream& stream, Task& task, const OperandSpan& operands, const GraphNodeRef& replay) {
  if (task.kind == Task::Kind::kKernel && task.kernel.function == nullptr) {
    return;  // the end of a graph's launch, which executes nothing
  }
  orTaskInfo info = describe(stream, task, stream.submitted);
  std::array<orOperand, 2> own{};
  info.graph_launch = replay.launch;
  info.node = replay.node;
  add_operands(info, task, operands, space_, own);
  task.observation = subscribers_.submitted(info);
  if (task.observation != 0) {
    stream.observed = stream.submitted;
    launched(task, clock_.host_time());
  }
}

void TaskTracer::notify_captured(const Stream& stream, const Task& task, const OperandSpan& operands, uint64_t node) {
  orTaskInfo info = describe(stream, task, 0);
  std::array<orOperand, 2> own{};
  info.node = node;
  add_operands(info, task, operands, space_, own);
  subscribers_.captured(info);
}

void TaskTracer::notify_completed(const Stream& stream, const Task& task) {
  TaskResult result = subscribers_.result(task.observation);
  if (result.end == 0) {  // no engine has executed it
    result.end = clock_.time();
    const bool needs_health = task.kind == Task::Kind::kDelay || task.kind == Task::Kind::kSemaphoreWait;
    if (needs_health && stream.device->failed && result.status == orSuccess) {
      result.status = stream.device->lost ? orErrorDeviceLost : orErrorLaunchFailure;
      result.skipped = true;
    }
  }
  orTaskCompletion completion{};
  completion.kind = kind_of(task);
  completion.device = stream.device->index;
  completion.stream = handle_of(stream);
  completion.queue = stream.index;
  completion.ticket = stream.completed + 1;
  completion.engine = result.engine;
  completion.launched = result.launched;
  completion.begin = result.begin;
  completion.end = result.end;
  completion.status = result.status;
  completion.skipped = result.skipped ? 1 : 0;
  subscribers_.completed(task.observation, completion);
}

bool TaskTracer::duration(const Stream& stream, const Task& task, uint64_t& nanoseconds) {
  if (task.observation == 0) {
    return false;
  }
  orTaskInfo info = describe(stream, task, stream.completed + 1);
  return subscribers_.duration(task.observation, info, nanoseconds);
}

int TaskTracer::engine(const Stream& stream, const Task& task) {
  if (task.observation == 0) {
    return SimulatedTime::kNoEngine;
  }
  orTaskInfo info = describe(stream, task, stream.completed + 1);
  const int answer = subscribers_.engine(task.observation, info);
  return answer < static_cast<int>(SimulatedTime::kEngines) ? std::max(answer, SimulatedTime::kNoEngine)
                                                            : SimulatedTime::kNoEngine;
}

uint64_t TaskTracer::host_time(const Stream& stream, const Task& task) {
  if (task.observation == 0) {
    return 0;
  }
  orTaskInfo info = describe(stream, task, stream.submitted);
  return subscribers_.host_time(task.observation, info);
}

void TaskTracer::notify_sync(orSyncKind kind, const Device& device, const Stream* stream, uint64_t ticket,
                             orEvent_t event, const Stream* waiting) {
  orSyncInfo info{};
  info.kind = kind;
  info.device = device.index;
  info.event = event;
  if (stream != nullptr) {
    info.stream = handle_of(*stream);
    info.queue = stream->index;
    info.ticket = ticket;
  }
  if (waiting != nullptr) {
    info.waiting = handle_of(*waiting);
    info.waiting_queue = waiting->index;
  }
  info.time = clock_.host_time();
  subscribers_.synced(info);
}

void TaskTracer::notify_semaphore(orSyncKind kind, const TimelineSemaphore& semaphore, uint64_t value,
                                  const Stream* waiting) {
  orSyncInfo info{};
  info.kind = kind;
  info.device = waiting == nullptr ? -1 : waiting->device->index;
  info.semaphore = handle_of(semaphore);
  info.value = value;
  if (waiting != nullptr) {
    info.waiting = handle_of(*waiting);
    info.waiting_queue = waiting->index;
  }
  info.time = clock_.host_time();
  subscribers_.synced(info);
}

}  // namespace openreg::driver
