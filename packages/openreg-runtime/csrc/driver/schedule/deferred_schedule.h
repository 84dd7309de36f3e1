// SPDX-License-Identifier: BSD-3-Clause
// DeferredSchedule is the base class of schedules that defer tasks: enqueued tasks are executed only while a host
// thread waits. Such a schedule can select among many tasks, independently of the speed of threads.
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

// A schedule that executes one task at a time over all devices, on one engine, and only while a host thread has a
// pending request (WaitRequest). The derived class selects each task and its duration. Guarded by the scheduler's
// mutex. A function with a `Lock&` releases the mutex while it blocks.
class DeferredSchedule {
 public:
  // `engine` executes all tasks.
  explicit DeferredSchedule(Engine& engine) : engine_(engine) {}
  DeferredSchedule(const DeferredSchedule&) = delete;
  DeferredSchedule& operator=(const DeferredSchedule&) = delete;

  // A guard that adds a request to the schedule and removes it in its destructor. Does nothing if `schedule` is null.
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

  // Selects the next task. Returns the stream whose head (oldest task) it is, or null if no request is pending or no
  // task can be executed. The engine's thread calls it.
  virtual Stream* next() = 0;
  // Advances the schedule's clock by the duration of the stream's head, which was executed, or skipped if `result`
  // states so. Sets begin and end of `result` to times of that clock. In simulated time, also sets the engine of
  // `result`, which then is one of the simulated chip.
  virtual void advance_clock(const Stream& stream, const Task& task, TaskResult& result) = 0;
  // Returns the longest time for which the thread of the idle engine may sleep before it calls next() again, in
  // nanoseconds. 0 means until it is woken.
  virtual uint64_t longest_sleep() const { return 0; }

  // Must be called before the host queries whether `ticket` (sequence number of a task) of `stream` is complete.
  // Executes as many deferred tasks as the derived class allows for a query. A null `stream` stands for a complete
  // ticket. Returns true if it may have released the mutex. Must not be called on an engine thread.
  virtual bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) = 0;
  // Returns true if so many tasks are deferred that the next call that enqueues one executes some.
  virtual bool has_backlog() const = 0;
  // Executes tasks if too many are deferred. Must be called after tasks were enqueued.
  virtual void after_submit(Lock& lock) = 0;
  // Ends the requests for a number of tasks, because no further task can be executed for them, and wakes their threads.
  void give_up_requests();
  // Wakes the host threads that block in wait(), because the engine has stopped.
  void stop() { met_.notify_all(); }

 protected:
  ~DeferredSchedule() = default;

  // The number of tasks that may be deferred before a call that enqueues executes some. A large number allows more
  // orders of tasks. A small number limits the memory that deferred tasks keep in use.
  static constexpr size_t kMaxBacklog = 256;
  // The number of consecutive queries after which a program counts as polling. The count starts again when a task is
  // enqueued, and after a query that has executed a task (in a seeded schedule) or whose ticket was complete (in
  // simulated time). Fewer queries, such as those of a caching allocator, must not influence the order of tasks.
  static constexpr size_t kPollThreshold = 64;

  // Called when a request was removed from the list.
  virtual void request_ended() {}
  // Blocks until the request, which must be in the list, is met or the engine has stopped.
  void wait(const WaitRequest& request, Lock& lock) {
    met_.wait(lock, [&] { return request.is_met() || engine_.is_stopped(); });
  }
  // Returns true if any request in the list is not met. Passive requests, which are those of threads that drive
  // communication (WaitRequest), are ignored unless `passive_counts` is true. Also wakes the threads whose requests are
  // met.
  bool has_pending_wait(bool passive_counts);
  // Counts one task for all requests, because a request may be for a number of tasks. A task that was executed counts;
  // in a seeded schedule so does a delay that ended, and a semaphore's signal that took effect.
  void count_task();

  Engine& engine_;
  std::vector<WaitRequest*> requests_;  // of the host threads that wait now

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
