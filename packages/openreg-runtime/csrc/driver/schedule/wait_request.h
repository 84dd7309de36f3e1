// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "objects/stream.h"

namespace openreg::driver {

// With a seed work is held back until somebody needs it: while a host thread waits for a ticket, or lets a number of
// tasks run, one of these stands in the schedule's list. The engine looks at the list between two tasks, so it stops
// exactly where the request ends, and what has run does not depend on how fast the threads are. Lives on the stack of
// the waiting thread. Guarded by the scheduler's mutex.
//
// That of a progress thread (orThreadSetProgress) is passive: when it comes depends on what other processes do, so it
// must not decide what runs. It is met by what others request.
class WaitRequest {
 public:
  // Until the ticket is done.
  WaitRequest(Stream& stream, uint64_t ticket, bool passive) : stream_(&stream), ticket_(ticket), passive_(passive) {}
  // Until so many tasks have run, or none is left that could.
  explicit WaitRequest(size_t tasks) : tasks_(tasks), counts_tasks_(true) {}
  WaitRequest(const WaitRequest&) = delete;
  WaitRequest& operator=(const WaitRequest&) = delete;

  // A signal that has come may be taken if it leads to the ticket. A null stream stands for one that is done.
  void poll(Stream* stream, uint64_t ticket) {
    stream_ = stream;
    ticket_ = ticket;
  }

  bool is_met() const { return counts_tasks_ ? tasks_ == 0 : stream_->completed >= ticket_; }
  bool is_passive() const { return passive_; }
  // Whether it goes on when the signal that it needs has not come.
  bool can_wait() const { return !counts_tasks_; }
  bool has_given_up() const { return gave_up_; }
  // The stream whose wait for a semaphore stands between now and the ticket; null if nothing does, or something else.
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
  // There is nothing left that could run.
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
