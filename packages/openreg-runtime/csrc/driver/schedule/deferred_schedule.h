// SPDX-License-Identifier: BSD-3-Clause
// Schedules that need to know what comes: work is held back until the host needs it.
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

// Work runs one task at a time over all devices, on one engine, and only while somebody requests it. Which task is
// next, and how long it took, the derived class says. Guarded by the scheduler's mutex.
class DeferredSchedule {
 public:
  // `engine` is the one that runs everything.
  explicit DeferredSchedule(Engine& engine) : engine_(engine) {}
  DeferredSchedule(const DeferredSchedule&) = delete;
  DeferredSchedule& operator=(const DeferredSchedule&) = delete;

  // Keeps a request in the list while it lives; with a null schedule it does nothing.
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

  // For the engine. The stream whose head runs now; null when nothing is demanded, or nothing can run.
  virtual Stream* next() = 0;
  // The stream's head has run, or was skipped as `result` says: lets the time pass that it took, and writes down when
  // it began and ended, and on which engine.
  virtual void advance_clock(const Stream& stream, const Task& task, TaskResult& result) = 0;
  // How long the engine may sleep, in nanoseconds; 0: until it is woken.
  virtual uint64_t longest_sleep() const { return 0; }

  // For the host. A query asks whether a ticket is done (of null: always), and may let tasks run. Whether it gave up
  // the lock for a while. Not to be called by a kernel.
  virtual bool run_for_query(Stream* stream, uint64_t ticket, Lock& lock) = 0;
  // Whether the next call that enqueues has to let tasks run.
  virtual bool has_backlog() const = 0;
  // After each call that enqueues: lets tasks run when too many are held back.
  virtual void after_submit(Lock& lock) = 0;
  // The engine has stopped: nobody is to wait for it.
  void stop() { met_.notify_all(); }

 protected:
  ~DeferredSchedule() = default;

  // Entries that may be held back before a launch lets some run: enough for long interleavings, little enough for
  // memory that frees wait for.
  static constexpr size_t kMaxBacklog = 256;
  // Queries in a row, with nothing enqueued between them, after which a program is seen to poll. One that looks in
  // passing, as a caching allocator does, must not decide anything.
  static constexpr size_t kPollThreshold = 64;

  virtual void request_ended() {}
  void wait(const WaitRequest& request, Lock& lock) {
    met_.wait(lock, [&] { return request.is_met() || engine_.is_stopped(); });
  }
  // Whether any request is not met; those of progress threads only count if `passive_counts`. Tells whose is met.
  bool has_pending_wait(bool passive_counts);
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
