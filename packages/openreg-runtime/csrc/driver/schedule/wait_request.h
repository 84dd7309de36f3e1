// SPDX-License-Identifier: BSD-3-Clause
// WaitRequest is the request of a host thread to execute deferred tasks: tasks that a DeferredSchedule executes only
// while a host thread waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "objects/stream.h"

namespace openreg::driver {

// A host thread's request to execute deferred tasks until a ticket (sequence number of a task in its stream) is
// complete, or until a number of tasks was executed. From then on, the request is met. The thread keeps it on its
// stack, and in the schedule's list while it waits. The engine checks the list between two tasks and stops exactly when
// all requests in it are met, so that the speed of threads does not influence which tasks are executed. Guarded by the
// scheduler's mutex.
//
// In a seeded schedule (OPENREG_SCHEDULE_SEED), signaling a semaphore does not end the waits for it immediately. The
// schedule lets one signal at a time take effect, and only when no other task can be executed.
//
// The request of a progress thread (one that drives communication, orThreadSetProgress()) is passive: in a seeded
// schedule it causes no task to be executed while other threads are active, because the moment at which it is made
// depends on other processes. Tasks that other requests execute can meet it.
class WaitRequest {
 public:
  // Requests tasks until `ticket` of the stream is complete.
  WaitRequest(Stream& stream, uint64_t ticket, bool passive) : stream_(&stream), ticket_(ticket), passive_(passive) {}
  // Requests a number of tasks, or fewer if no further task can be executed. In a seeded schedule, a delay that ends
  // and a signal that takes effect count as tasks, too.
  explicit WaitRequest(size_t tasks) : tasks_(tasks), counts_tasks_(true) {}
  WaitRequest(const WaitRequest&) = delete;
  WaitRequest& operator=(const WaitRequest&) = delete;

  // For a thread that polls: gives a request for a number of tasks also a ticket. blocking_stream() then finds the
  // semaphore wait that blocks this ticket, and in a seeded schedule the signal of that semaphore can take effect. A
  // null `stream` stands for a complete ticket.
  void set_ticket(Stream* stream, uint64_t ticket) {
    stream_ = stream;
    ticket_ = ticket;
  }

  // Returns true if the thread can continue.
  bool is_met() const { return counts_tasks_ ? tasks_ == 0 : stream_->completed >= ticket_; }
  bool is_passive() const { return passive_; }
  // Returns true if the request may stay pending when no task can be executed: it is for a ticket, and a later signal
  // or launch may complete it. A request for a number of tasks gives up then.
  bool can_wait() const { return !counts_tasks_; }
  // Returns true if the request has ended before the requested number of tasks was executed.
  bool has_given_up() const { return gave_up_; }
  // Returns the stream at whose head (oldest task) is the semaphore wait that blocks the ticket, directly or through
  // waits for other streams. Returns null if no semaphore wait blocks it.
  Stream* blocking_stream() const {
    Stream* stream = stream_;
    uint64_t ticket = ticket_;
    while (stream != nullptr && stream->completed < ticket && !stream->queue.empty()) {
      const Task& head = stream->queue.front();
      if (head.kind == Task::Kind::kSemaphoreWait) {
        return stream;
      }
      if (head.kind != Task::Kind::kWait) {
        return nullptr;
      }
      stream = head.wait.stream;
      ticket = head.wait.ticket;
    }
    return nullptr;
  }
  // Counts one task, if the request is for a number of tasks.
  void count_task() {
    if (tasks_ > 0) {
      --tasks_;
    }
  }
  // Ends a request for a number of tasks, because no further task can be executed.
  void give_up() {
    gave_up_ = gave_up_ || tasks_ > 0;
    tasks_ = 0;
  }

 private:
  Stream* stream_ = nullptr;
  uint64_t ticket_ = 0;
  size_t tasks_ = 0;
  bool counts_tasks_ = false;
  bool passive_ = false;
  bool gave_up_ = false;
};

}  // namespace openreg::driver
