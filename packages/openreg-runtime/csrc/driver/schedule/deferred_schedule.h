// SPDX-License-Identifier: BSD-3-Clause
// The base class of schedules that defer tasks until the host waits, so that they can select among many.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/lock.h"
#include "engine/engine.h"
#include "objects/stream.h"
#include "observe/subscriber_list.h"
#include "schedule/wait_request.h"

namespace openreg::driver {

// A schedule that executes one task at a time over all devices, on one engine, and only while a host thread requests
// it. The derived class selects the task and its duration. Guarded by the scheduler's mutex. A function that takes a
// `Lock&` releases the mutex while it blocks.
class DeferredSchedule {
 public:
  // `engine` executes all tasks.
  explicit DeferredSchedule(Engine& engine) : engine_(engine) {}
  DeferredSchedule(const DeferredSchedule&) = delete;
  DeferredSchedule& operator=(const DeferredSchedule&) = delete;

  // A guard that keeps a request in the schedule's list. With a null schedule it does nothing.
  class WaitRequestGuard {
   public:
    WaitRequestGuard(DeferredSchedule* schedule, WaitRequest& request) : schedule_(schedule), request_(request) {
      if (schedule_ != nullptr) {
        schedule_->add(request_);
      }
    }
    WaitRequestGuard(const WaitRequestGuard&) = delete;
    WaitRequestGuard& operator=(const WaitRequestGuard&) = delete;
    ~WaitRequestGuard() {
      if (schedule_ != nullptr) {
        schedule_->remove(request_);
      }
    }

   private:
    DeferredSchedule* const schedule_;
    WaitRequest& request_;
  };

  // Returns the stream whose head the engine executes now. Null if no request is pending or no task can run.
  virtual Stream* next() = 0;
  // Advances the clock by the duration of the stream's head, which was executed or, as `result` states, skipped. Sets
  // begin and end of `result`, and in simulated time its engine.
  virtual void advance_clock(const Stream& stream, const Task& task, TaskResult& result) = 0;
  // Returns how long the engine may sleep, in nanoseconds; 0 means until it is woken.
  virtual uint64_t longest_sleep() const { return 0; }

  // Runs tasks as the schedule allows, because the host queries whether `ticket` of `stream` is complete; a null stream
  // stands for a complete ticket. Returns true if it may have released the mutex. Must not be called on an engine
  // thread.
  virtual bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) = 0;
  // Returns true if the next call that enqueues a task has to run tasks.
  virtual bool has_backlog() const = 0;
  // Runs tasks if too many are deferred. Must be called after each call that enqueues.
  virtual void after_submit(Lock& lock) = 0;
  // Wakes the threads that wait, because the engine has stopped.
  void stop() { met_.notify_all(); }

 protected:
  ~DeferredSchedule() = default;

  // The number of tasks that may be deferred before a launch runs some. Large enough for long interleavings, small
  // enough for memory whose release waits for these tasks.
  static constexpr size_t kMaxBacklog = 256;
  // The number of queries in a row, with nothing enqueued between them, after which a program counts as polling. An
  // occasional query, as of a caching allocator, must not decide the order.
  static constexpr size_t kPollThreshold = 64;

  // Called when a request has left the list.
  virtual void request_ended() {}
  // Blocks until the request is met or the engine has stopped.
  void wait(const WaitRequest& request, Lock& lock) {
    met_.wait(lock, [&] { return request.is_met() || engine_.is_stopped(); });
  }
  // Returns true if a request is not met; requests of progress threads count only if `passive_counts`. Also wakes the
  // threads whose requests are met.
  bool has_pending_wait(bool passive_counts);
  // Counts one task for all requests.
  void count_task();

  Engine& engine_;
  std::vector<WaitRequest*> requests_;

 private:
  void add(WaitRequest& request) {
    requests_.push_back(&request);
    engine_.wake();
  }
  void remove(WaitRequest& request) {
    std::erase(requests_, &request);
    request_ended();
  }

  std::condition_variable met_;  // notified when a request is met
};

}  // namespace openreg::driver
