// SPDX-License-Identifier: BSD-3-Clause
#include "ordering.h"

#include <algorithm>

namespace openreg::sanitizer {

namespace {

constexpr size_t kHistory = 64;
constexpr size_t kSignals = 64;
constexpr size_t kEvents = size_t{1} << 16;

}  // namespace

Ordering::Queue& Ordering::queue_of(uint32_t index) {
  if (index >= queues_.size()) {
    queues_.resize(size_t{index} + 1);
  }
  return queues_[index];
}

void Ordering::know(uint32_t index, int device, orStream_t stream) {
  Queue& queue = queue_of(index);
  const bool is_default =
      device >= 0 && static_cast<size_t>(device) < defaults_.size() && defaults_[static_cast<size_t>(device)] == stream;
  queue.stream = {device, is_default ? 0 : static_cast<int64_t>(reinterpret_cast<intptr_t>(stream))};
}

int64_t Ordering::find(const StreamName& stream) const {
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].stream.device == stream.device && queues_[i].stream.id == stream.id) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

void Ordering::join(Queue& queue, const VectorClock& clock) {
  VectorClock before = queue.clock;
  if (!queue.clock.join(clock)) {
    return;
  }
  // The clock before is that of the tickets so far.
  if (queue.history.empty() || queue.history.back().first != queue.submitted) {
    queue.history.emplace_back(queue.submitted, std::move(before));
    if (queue.history.size() > kHistory) {
      queue.history.pop_front();
    }
  }
}

void Ordering::join_host(const VectorClock& clock) {
  if (host_.join(clock)) {
    ++host_epoch_;
  }
}

// Returns all that has happened when the task (queue, ticket) is complete. An old ticket gets the clock of a later one,
// which may hide a race and never invents one.
VectorClock Ordering::place(uint32_t index, uint64_t ticket) {
  Queue& queue = queue_of(index);
  VectorClock clock = queue.clock;
  if (ticket < queue.submitted) {
    const auto found = std::find_if(queue.history.begin(), queue.history.end(),
                                    [&](const auto& entry) { return entry.first >= ticket; });
    if (found != queue.history.end()) {
      clock = found->second;
    }
  }
  clock.raise(index, ticket);
  return clock;
}

// Forgets events, of which the driver does not report the end. A wait for one that the host has waited for orders
// nothing more. Without its clock, a wait falls back to the event's place.
void Ordering::limit_events() {
  if (events_.size() < event_limit_) {
    return;
  }
  std::erase_if(events_, [&](const auto& event) { return event.second.is_within(host_); });
  if (events_.size() > kEvents) {
    events_.clear();
  }
  event_limit_ = std::max(2 * events_.size(), kEvents / 16);
}

const VectorClock& Ordering::submitted(const orTaskInfo& task) {
  know(task.queue, task.device, task.stream);
  // A wait of the program was reported with its event. A graph's wait has none.
  if (task.kind == orTaskEventWait && task.graph_launch != 0) {
    const VectorClock waited = place(task.waited_queue, task.waited_ticket);
    join(queue_of(task.queue), waited);
  }
  Queue& queue = queues_[task.queue];
  if (queue.host_epoch != host_epoch_) {
    join(queue, host_);
    queue.host_epoch = host_epoch_;
  }
  queue.submitted = task.ticket;
  return queue.clock;
}

void Ordering::synchronized(const orSyncInfo& sync, bool is_helper, bool is_implicit) {
  const bool has_place = sync.stream != nullptr;
  if (has_place && sync.kind != orSyncEventWait) {  // whose device is that of the waiting stream
    know(sync.queue, sync.device, sync.stream);
  }
  switch (sync.kind) {
    case orSyncEventRecord: {
      VectorClock clock = queue_of(sync.queue).clock;
      clock.join(host_);
      clock.raise(sync.queue, sync.ticket);
      events_[sync.event] = std::move(clock);
      limit_events();
      return;
    }
    case orSyncEventWait: {
      know(sync.waiting_queue, sync.device, sync.waiting);
      const auto found = events_.find(sync.event);
      if (found != events_.end()) {
        join(queue_of(sync.waiting_queue), found->second);
      } else if (has_place) {
        const VectorClock clock = place(sync.queue, sync.ticket);
        join(queue_of(sync.waiting_queue), clock);
      }
      return;
    }
    case orSyncEvent:
    case orSyncEventQuery: {
      if (is_helper || is_implicit) {
        return;
      }
      const auto found = events_.find(sync.event);
      if (found != events_.end()) {
        join_host(found->second);
      } else if (has_place) {
        join_host(place(sync.queue, sync.ticket));
      }
      return;
    }
    case orSyncStream:
    case orSyncStreamQuery:
      if (!is_helper && !is_implicit && has_place) {
        join_host(place(sync.queue, sync.ticket));
      }
      return;
    case orSyncDevice:
      if (!is_helper && !is_implicit) {
        for (uint32_t i = 0; i < queues_.size(); ++i) {
          if (queues_[i].stream.device == sync.device) {
            join_host(place(i, queues_[i].submitted));
          }
        }
      }
      return;
    case orSyncSemaphoreSignal: {
      // What a helper thread has seen is of no stream of the program: the transfer that it reports lies between two
      // tasks of one stream.
      Semaphore& semaphore = semaphores_[sync.semaphore];
      semaphore.signals.emplace_back(sync.value, is_helper ? VectorClock() : host_);
      if (semaphore.signals.size() > kSignals) {
        semaphore.signals[1].second.join(semaphore.signals[0].second);
        semaphore.signals.erase(semaphore.signals.begin());
      }
      std::erase_if(semaphore.waits, [&](const auto& wait) {
        if (wait.first > sync.value) {
          return false;
        }
        join(queue_of(wait.second), semaphore.signals.back().second);
        return true;
      });
      return;
    }
    case orSyncSemaphoreWait: {
      know(sync.waiting_queue, sync.device, sync.waiting);
      Semaphore& semaphore = semaphores_[sync.semaphore];
      bool reached = false;
      for (const auto& [value, clock] : semaphore.signals) {
        if (!reached) {
          join(queue_of(sync.waiting_queue), clock);
        }
        reached = reached || value >= sync.value;
      }
      if (!reached) {
        semaphore.waits.emplace_back(sync.value, sync.waiting_queue);
      }
      return;
    }
  }
}

}  // namespace openreg::sanitizer
