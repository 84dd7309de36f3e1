// SPDX-License-Identifier: BSD-3-Clause
// The callbacks run under the device's lock, on the thread that launches or waits: they copy a few numbers and return.
#include "task_log.h"

#include <utility>

#include "openreg/runtime/status.h"

namespace openreg::predict {
namespace {

int64_t& current_call() {
  thread_local int64_t call = -1;
  return call;
}

uint64_t bytes_of(const orTaskInfo& task) {
  uint64_t bytes = task.bytes;
  for (size_t i = 0; task.bytes == 0 && task.operands != nullptr && i < task.operand_count; ++i) {
    bytes += task.operands[i].size;
  }
  return bytes;
}

}  // namespace

void enter_call(int64_t call) {
  current_call() = call;
}

TaskLog::TaskLog() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands;
  table.submit = [](void* user, const orTaskInfo* task, uint64_t* /*correlation*/) {
    auto* log = static_cast<TaskLog*>(user);
    if (task->kind == orTaskEventWait && task->graph_launch != 0) {  // between the streams of a graph
      log->note({Entry::Kind::wait, -1, 0, task->device, task->waited_queue, task->waited_ticket, 0, task->graph_launch,
                 task->queue, ""});
      return;
    }
    log->note({Entry::Kind::task, current_call(), task->kind, task->device, task->queue, task->ticket, bytes_of(*task),
               task->graph_launch, 0, task->name == nullptr ? "" : task->name});
  };
  table.sync = [](void* user, const orSyncInfo* sync) {
    auto* log = static_cast<TaskLog*>(user);
    const auto add = [&](Entry::Kind kind) {
      log->note({kind, current_call(), 0, sync->device, sync->queue, sync->ticket, 0, 0, sync->waiting_queue, ""});
    };
    if (sync->kind == orSyncEventWait && sync->stream != nullptr) {
      add(Entry::Kind::wait);
    } else if ((sync->kind == orSyncEvent || sync->kind == orSyncStream) && sync->stream != nullptr) {
      add(Entry::Kind::host_waits_for_place);
    } else if (sync->kind == orSyncDevice) {
      add(Entry::Kind::host_waits_for_device);
    }
  };
  orSubscription_t subscription = nullptr;
  OPENREG_CHECK(orSubscribe(&table, this, &subscription));
  subscription_ = subscription;
}

TaskLog::~TaskLog() {
  if (const orSubscription_t subscription = subscription_.exchange(nullptr)) {
    OPENREG_WARN(orUnsubscribe(subscription));
  }
}

void TaskLog::stop() {
  if (const orSubscription_t subscription = subscription_.exchange(nullptr)) {
    OPENREG_CHECK(orUnsubscribe(subscription));
  }
}

std::vector<Entry> TaskLog::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(entries_, {});
}

void TaskLog::note(Entry entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.push_back(std::move(entry));
}

}  // namespace openreg::predict
