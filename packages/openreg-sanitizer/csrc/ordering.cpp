// SPDX-License-Identifier: BSD-3-Clause
#include "ordering.h"

#include <algorithm>

namespace openreg::sanitizer {

namespace {

constexpr size_t kMaxHistory = 64;  // earlier clocks of a queue
constexpr size_t kMaxSignals = 64;  // of a semaphore
constexpr size_t kMaxEvents = size_t{1} << 16;

}  // namespace

Ordering::QueueState& Ordering::state_of(uint32_t queue) {
  if (queue >= queues_.size()) {
    queues_.resize(size_t{queue} + 1);
  }
  return queues_[queue];
}

void Ordering::set_stream(uint32_t queue, int device, orStream_t stream) {
  const bool is_default =
      device >= 0 && static_cast<size_t>(device) < defaults_.size() && defaults_[static_cast<size_t>(device)] == stream;
  state_of(queue).stream = {device, is_default ? 0 : static_cast<int64_t>(reinterpret_cast<intptr_t>(stream))};
}

std::optional<uint32_t> Ordering::find_queue(const StreamName& stream) const {
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].stream.device == stream.device && queues_[i].stream.id == stream.id) {
      return static_cast<uint32_t>(i);
    }
  }
  return std::nullopt;
}

// Adds `clock` to that of the queue's next task. The clock until now stays in the history, for the tickets so far.
void Ordering::join_queue(uint32_t queue, const VectorClock& clock) {
  QueueState& state = state_of(queue);
  VectorClock before = state.clock;
  if (!state.clock.join(clock)) {
    return;
  }
  if (state.history.empty() || state.history.back().first != state.newest_ticket) {
    state.history.emplace_back(state.newest_ticket, std::move(before));
    if (state.history.size() > kMaxHistory) {
      state.history.pop_front();
    }
  }
}

void Ordering::join_host(const VectorClock& clock) {
  if (host_.join(clock)) {
    ++host_epoch_;
  }
}

// Adds all tasks of a device so far to the host's clock.
void Ordering::join_device(int device) {
  for (uint32_t queue = 0; queue < queues_.size(); ++queue) {
    if (queues_[queue].stream.device == device) {
      join_host(clock_after_newest(queue));
    }
  }
}

// Returns the clock of the point right after a task, which includes the task. A task that is older than the history
// gets the clock of a later one, which may hide a race and never invents one.
VectorClock Ordering::clock_after(const TaskId& task) const {
  VectorClock clock;
  if (task.queue < queues_.size()) {
    const QueueState& state = queues_[task.queue];
    const auto is_valid = [&](const auto& entry) { return entry.first >= task.ticket; };
    const auto found = task.ticket < state.newest_ticket
                           ? std::find_if(state.history.begin(), state.history.end(), is_valid)
                           : state.history.end();
    clock = found == state.history.end() ? state.clock : found->second;
  }
  clock.add(task);
  return clock;
}

// Returns the clock of an event. If it was forgotten, computes it from the task after which the event was recorded. The
// clock of an event without a record is empty.
VectorClock Ordering::clock_of_event(const orSyncInfo& sync) const {
  const auto found = events_.find(sync.event);
  if (found != events_.end()) {
    return found->second;
  }
  return sync.stream == nullptr ? VectorClock() : clock_after({sync.queue, sync.ticket});
}

void Ordering::record_event(const orSyncInfo& sync) {
  VectorClock clock = state_of(sync.queue).clock;
  clock.join(host_);
  clock.add({sync.queue, sync.ticket});
  events_[sync.event] = std::move(clock);
  limit_events();
}

// Forgets events, because the driver does not report when the program destroys one. An event that the host has waited
// for orders nothing more.
void Ordering::limit_events() {
  if (events_.size() < event_limit_) {
    return;
  }
  std::erase_if(events_, [&](const auto& event) { return event.second.is_within(host_); });
  if (events_.size() > kMaxEvents) {
    events_.clear();
  }
  event_limit_ = std::max(2 * events_.size(), kMaxEvents / 16);
}

// Orders the host before the waits that the signal ends. A signal of a helper thread orders nothing: the transfer
// between processes that it reports lies between two tasks of one queue, which that queue orders.
void Ordering::signal_semaphore(const orSyncInfo& sync, bool is_helper) {
  SemaphoreState& semaphore = semaphores_[sync.semaphore];
  semaphore.signals.emplace_back(sync.value, is_helper ? VectorClock() : host_);
  if (semaphore.signals.size() > kMaxSignals) {
    semaphore.signals[1].second.join(semaphore.signals[0].second);
    semaphore.signals.erase(semaphore.signals.begin());
  }
  std::erase_if(semaphore.waits, [&](const auto& wait) {
    const auto& [value, queue] = wait;
    if (value > sync.value) {
      return false;
    }
    join_queue(queue, semaphore.signals.back().second);
    return true;
  });
}

// Orders the waiting stream after all signals up to the first that reaches the value.
void Ordering::wait_for_semaphore(const orSyncInfo& sync) {
  SemaphoreState& semaphore = semaphores_[sync.semaphore];
  for (const auto& [value, clock] : semaphore.signals) {
    join_queue(sync.waiting_queue, clock);
    if (value >= sync.value) {
      return;
    }
  }
  semaphore.waits.emplace_back(sync.value, sync.waiting_queue);
}

const VectorClock& Ordering::submit(const orTaskInfo& task) {
  set_stream(task.queue, task.device, task.stream);
  // A wait of the program was reported to synchronize(), with its event. A wait between branches of a graph was not.
  if (task.kind == orTaskEventWait && task.graph_launch != 0) {
    join_queue(task.queue, clock_after({task.waited_queue, task.waited_ticket}));
  }
  QueueState& state = queues_[task.queue];
  if (state.host_epoch != host_epoch_) {
    join_queue(task.queue, host_);
    state.host_epoch = host_epoch_;
  }
  state.newest_ticket = task.ticket;
  return state.clock;
}

void Ordering::synchronize(const orSyncInfo& sync, bool is_helper, bool is_implicit) {
  const bool has_task = sync.stream != nullptr;  // (sync.queue, sync.ticket)
  const bool is_requested = !is_helper && !is_implicit;
  if (has_task && sync.kind != orSyncEventWait) {  // where `device` is that of the waiting stream
    set_stream(sync.queue, sync.device, sync.stream);
  }
  switch (sync.kind) {
    case orSyncEventRecord:
      record_event(sync);
      return;
    case orSyncEventWait:
      set_stream(sync.waiting_queue, sync.device, sync.waiting);
      join_queue(sync.waiting_queue, clock_of_event(sync));
      return;
    case orSyncEvent:
    case orSyncEventQuery:
      if (is_requested) {
        join_host(clock_of_event(sync));
      }
      return;
    case orSyncStream:
    case orSyncStreamQuery:
      if (is_requested && has_task) {
        join_host(clock_after({sync.queue, sync.ticket}));
      }
      return;
    case orSyncDevice:
      if (is_requested) {
        join_device(sync.device);
      }
      return;
    case orSyncSemaphoreSignal:
      signal_semaphore(sync, is_helper);
      return;
    case orSyncSemaphoreWait:
      set_stream(sync.waiting_queue, sync.device, sync.waiting);
      wait_for_semaphore(sync);
      return;
  }
}

}  // namespace openreg::sanitizer
