// SPDX-License-Identifier: BSD-3-Clause
// The driver calls the callbacks while it holds its scheduler's mutex, so they must neither block nor call the driver.
#include "chip_time_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "openreg/runtime/status.h"

namespace openreg::predict {
namespace {

// Returns the number of the operator call of the calling thread; -1: none.
int64_t& current_call() {
  thread_local int64_t call = -1;
  return call;
}

// Returns the bytes of a copy or fill, or the sum over the operands of a kernel.
uint64_t bytes_of(const orTaskInfo& task) {
  uint64_t bytes = task.bytes;
  for (size_t i = 0; task.bytes == 0 && task.operands != nullptr && i < task.operand_count; ++i) {
    bytes += task.operands[i].size;
  }
  return bytes;
}

// Returns true if tasks of this kind keep an engine busy. The others only order tasks or call the host.
bool is_work(int kind) {
  return kind == orTaskKernel || kind == orTaskCopy || kind == orTaskFill;
}

// Returns the share of a task in the time of its call, by bytes. Without bytes, the first task gets the whole time.
uint64_t share_of(uint64_t nanoseconds, uint64_t bytes, uint64_t all_bytes, bool is_first) {
  if (all_bytes == 0) {
    return is_first ? nanoseconds : 0;
  }
  const double share = static_cast<double>(bytes) / static_cast<double>(all_bytes);
  return static_cast<uint64_t>(std::llround(static_cast<double>(nanoseconds) * share));
}

}  // namespace

void enter_call(int64_t call) {
  current_call() = call;
}

ChipTimeSource::~ChipTimeSource() {
  if (const orSubscription_t subscription = std::exchange(subscription_, nullptr)) {
    OPENREG_WARN(orUnsubscribe(subscription));
  }
}

void ChipTimeSource::start() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands | orSubscribeTime;
  table.submit = [](void* user, const orTaskInfo* task, uint64_t* correlation) {
    static_cast<ChipTimeSource*>(user)->submit(*task, *correlation);
  };
  table.capture = [](void* user, const orTaskInfo* task) { static_cast<ChipTimeSource*>(user)->capture(*task); };
  table.complete = [](void* user, const orTaskCompletion* task) {
    static_cast<ChipTimeSource*>(user)->complete(*task);
  };
  table.sync = [](void* user, const orSyncInfo* sync) { static_cast<ChipTimeSource*>(user)->sync(*sync); };
  table.duration = [](void* user, const orTaskInfo* task, uint64_t* nanoseconds) {
    auto* keeper = static_cast<ChipTimeSource*>(user);
    const std::lock_guard<std::mutex> lock(keeper->mutex_);
    const TaskTiming& entry = keeper->entries_[task->correlation];
    *nanoseconds = keeper->duration(entry);
    const bool is_known_wait = entry.call >= 0 && keeper->calls_[entry.call].cost.is_collective;
    return entry.kind != orTaskSemaphoreWait || is_known_wait ? 1 : 0;
  };
  table.engine = [](void* user, const orTaskInfo* task) {
    auto* keeper = static_cast<ChipTimeSource*>(user);
    const std::lock_guard<std::mutex> lock(keeper->mutex_);
    const TaskTiming& entry = keeper->entries_[task->correlation];
    const int engine = keeper->engine(entry);
    return engine < 0 ? -1 : entry.device * keeper->defaults_.engines + engine;
  };
  table.host = [](void* user, const orTaskInfo* task) {
    auto* keeper = static_cast<ChipTimeSource*>(user);
    const std::lock_guard<std::mutex> lock(keeper->mutex_);
    return keeper->host_time(keeper->entries_.back());
  };
  OPENREG_CHECK(orSubscribe(&table, this, &subscription_));
  OPENREG_CHECK(orStreamSynchronize(nullptr));  // calls sync() with the time
  begin_ = waits_.front();
  waits_.clear();
}

void ChipTimeSource::stop() {
  if (const orSubscription_t subscription = std::exchange(subscription_, nullptr)) {
    OPENREG_CHECK(orUnsubscribe(subscription));
  }
}

void ChipTimeSource::set_cost(int64_t call, const CallCost& cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_[call].cost = cost;
}

void ChipTimeSource::submit(const orTaskInfo& task, uint64_t& correlation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TaskTiming entry;
  entry.kind = task.kind;
  entry.device = task.device;
  entry.queue = task.queue;
  entry.ticket = task.ticket;
  entry.bytes = bytes_of(task);
  entry.graph_launch = task.graph_launch;
  entry.node = task.node;
  entry.name = task.name == nullptr ? "" : task.name;
  entry.call = current_call();
  if (task.graph_launch != 0) {
    const auto node = nodes_.find(task.node);
    entry.call = node == nodes_.end() ? -1 : node->second.call;
  }
  correlation = entries_.size();
  entries_.push_back(std::move(entry));
}

void ChipTimeSource::capture(const orTaskInfo& task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t call = current_call();
  bool is_first = false;
  if (call >= 0 && is_work(task.kind)) {
    is_first = calls_[call].nodes++ == 0;
    calls_[call].node_bytes += bytes_of(task);
  }
  nodes_[task.node] = {call, bytes_of(task), is_first};
}

void ChipTimeSource::complete(const orTaskCompletion& task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TaskTiming& entry = entries_[task.correlation];
  entry.launched = task.launched;
  entry.begin = task.begin;
  entry.end = task.end;
  entry.engine = task.engine < 0 ? -1 : task.engine % defaults_.engines;
}

void ChipTimeSource::sync(const orSyncInfo& sync) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sync.kind == orSyncEvent || sync.kind == orSyncStream || sync.kind == orSyncDevice) {
    waits_.push_back(sync.time);
  }
}

uint64_t ChipTimeSource::default_duration(const TaskTiming& entry) const {
  const auto bytes = static_cast<double>(entry.bytes);
  switch (static_cast<orTaskKind>(entry.kind)) {
    case orTaskCopy:
      return defaults_.link_latency + static_cast<uint64_t>(std::llround(bytes * defaults_.link_time));
    case orTaskKernel:
    case orTaskFill:
      return defaults_.launch + static_cast<uint64_t>(std::llround(bytes * defaults_.memory_time));
    default:
      return 0;
  }
}

// Returns the task's share of the cost of its call, in nanoseconds. The cost of a collective belongs to its semaphore
// wait, because its messages are in transit meanwhile.
uint64_t ChipTimeSource::duration(const TaskTiming& entry) {
  if (entry.call < 0) {
    return default_duration(entry);
  }
  CallBudget& call = calls_[entry.call];
  if (call.cost.is_collective) {
    return entry.kind == orTaskSemaphoreWait ? call.cost.engine_time : default_duration(entry);
  }
  if (!is_work(entry.kind)) {
    return 0;
  }
  if (call.cost.engine < 0) {
    return default_duration(entry);
  }
  if (entry.graph_launch != 0) {
    const CapturedNode& node = nodes_[entry.node];
    return share_of(call.cost.graph_time, node.bytes, call.node_bytes, node.is_first);
  }
  // The share is limited to the time that is left, because later tasks are unknown if the host waits in the middle of a
  // call.
  const uint64_t left = call.cost.engine_time - std::min(call.cost.engine_time, call.spent);
  const uint64_t own = std::min(left, share_of(call.cost.engine_time, entry.bytes, call.bytes, entry.is_first));
  call.spent += own;
  return own;
}

int ChipTimeSource::engine(const TaskTiming& entry) {
  if (!is_work(entry.kind)) {
    return -1;
  }
  if (entry.call >= 0 && !calls_[entry.call].cost.is_collective && calls_[entry.call].cost.engine >= 0) {
    return calls_[entry.call].cost.engine;
  }
  return entry.kind == orTaskCopy ? defaults_.copy_engine : 0;
}

// Returns the host's time for a task, in nanoseconds. A call or a graph launch costs time only with its first task,
// because the host launches it once. Tasks that only order others cost nothing, except a semaphore wait that belongs to
// a call.
uint64_t ChipTimeSource::host_time(TaskTiming& entry) {
  bool is_launch = is_work(entry.kind) && entry.call < 0;
  if (entry.graph_launch != 0) {
    is_launch = std::exchange(newest_graph_launch_, entry.graph_launch) != entry.graph_launch;
  } else if (entry.call >= 0 && (is_work(entry.kind) || entry.kind == orTaskSemaphoreWait)) {
    CallBudget& call = calls_[entry.call];
    is_launch = entry.is_first = call.tasks++ == 0;
    call.bytes += entry.bytes;
  }
  entry.host_time = is_launch ? defaults_.host_launch : 0;
  return entry.host_time;
}

}  // namespace openreg::predict
