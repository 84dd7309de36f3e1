// SPDX-License-Identifier: BSD-3-Clause
// The request of a waiting host thread to run deferred tasks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "objects/stream.h"

namespace openreg::driver {

// A host thread's request to run deferred tasks, until a ticket is complete or a number of tasks has run. Lives on that
// thread's stack and is in the schedule's list meanwhile. The engine checks the list between two tasks and stops
// exactly where the request ends, so that thread speed does not decide what runs. Guarded by the scheduler's mutex.
//
// The request of a progress thread (orThreadSetProgress) is passive: its time depends on other processes, so it must
// not decide what runs. It is met by tasks that other requests run.
class WaitRequest {
 public:
  // Requests tasks until `ticket` is complete.
  WaitRequest(Stream& stream, uint64_t ticket, bool passive) : stream_(&stream), ticket_(ticket), passive_(passive) {}
  // Requests a number of tasks, or fewer if no further task can run.
  explicit WaitRequest(size_t tasks) : tasks_(tasks), counts_tasks_(true) {}
  WaitRequest(const WaitRequest&) = delete;
  WaitRequest& operator=(const WaitRequest&) = delete;

  // Allows the engine to take a signal that has come if it leads to `ticket`. A null stream stands for a ticket that is
  // complete.
  void poll(Stream* stream, uint64_t ticket) {
    stream_ = stream;
    ticket_ = ticket;
  }

  bool is_met() const { return counts_tasks_ ? tasks_ == 0 : stream_->completed >= ticket_; }
  bool is_passive() const { return passive_; }
  // Returns true if the request stays pending while the signal that it needs has not come.
  bool can_wait() const { return !counts_tasks_; }
  bool has_given_up() const { return gave_up_; }
  // Returns the stream whose semaphore wait blocks the ticket. Null if nothing does, or something else.
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
  void count_task() {
    if (tasks_ > 0) {
      --tasks_;
    }
  }
  // Ends a request for a number of tasks, because no further task can run.
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
