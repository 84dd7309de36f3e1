// SPDX-License-Identifier: BSD-3-Clause
// WaitRequest is the request of a host thread to execute deferred tasks: tasks that a DeferredSchedule executes only
// while a host thread waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "objects/stream.h"

namespace openreg::driver {

// A host thread's request to execute deferred tasks until a ticket (sequence number of a task in its stream) is
// complete, or until a number of tasks was executed. It is met from then on. It is an object on that thread's stack,
// and in the schedule's list while the thread waits. The engine checks the list between two tasks and stops exactly
// when the request is met, so that the speed of threads does not influence which tasks are executed. Guarded by the
// scheduler's mutex.
//
// The request of a progress thread (one that drives communication, orThreadSetProgress()) is passive: in a seeded
// schedule (OPENREG_SCHEDULE_SEED) it causes no task to be executed while other threads are active, because its time
// depends on other processes. It is met by tasks that other requests execute.
class WaitRequest {
 public:
  // Requests tasks until `ticket` of the stream is complete.
  WaitRequest(Stream& stream, uint64_t ticket, bool passive) : stream_(&stream), ticket_(ticket), passive_(passive) {}
  // Requests a number of tasks, or fewer if no further task can be executed.
  explicit WaitRequest(size_t tasks) : tasks_(tasks), counts_tasks_(true) {}
  WaitRequest(const WaitRequest&) = delete;
  WaitRequest& operator=(const WaitRequest&) = delete;

  // Makes blocking_stream() of a request for a number of tasks depend on `ticket` of `stream`, for a thread that polls
  // for this ticket. A seeded schedule can then let a signal take effect for which the ticket waits. A null `stream`
  // stands for a complete ticket.
  void poll(Stream* stream, uint64_t ticket) {
    stream_ = stream;
    ticket_ = ticket;
  }

  // Returns true if the thread can continue.
  bool is_met() const { return counts_tasks_ ? tasks_ == 0 : stream_->completed >= ticket_; }
  bool is_passive() const { return passive_; }
  // Returns true if the request is for a ticket. It then stays pending until a signal that it needs has come, while a
  // request for a number of tasks gives up.
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
  // Counts one executed task.
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
