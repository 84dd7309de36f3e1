// SPDX-License-Identifier: BSD-3-Clause
// SubscriberList holds the subscribers of the driver and calls their callbacks. A subscriber is a table of callbacks
// (orSubscriber) that a profiler or another observer registers, as with CUPTI.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

// One subscription, from orSubscribe() to orUnsubscribe(). Guarded by the scheduler's mutex.
struct Subscription : HandleSlot {
  static constexpr uint32_t kHandleKind = 4;

  orSubscriber table{};
  void* user = nullptr;
  char failure[256] = {};  // text on the first callback that threw; once set, no callback is called
};

// The result of a task, for `complete` callbacks. The members are those of orTaskCompletion. Times are in nanoseconds
// of the scheduler's Clock.
struct TaskResult {
  uint64_t launched = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  int engine = -1;
  orError_t status = orSuccess;
  bool skipped = false;
};

// The list of subscriptions. It calls their callbacks in the order of subscription, and gives each task that a
// subscriber sees a number, by which callers refer to the task. It does not access streams. The caller holds the
// scheduler's mutex, also while callbacks run.
class SubscriberList {
 public:
  // Throws Error(orErrorInvalidValue) if the table's version, size or flags are unknown, or if it has no callback.
  static void check(const orSubscriber& table);
  // Opens a subscription, whose callbacks receive `user`. Copies `table`, which check() must have accepted.
  Subscription& subscribe(const orSubscriber& table, void* user);
  // Returns the subscription of a handle. Throws Error(orErrorInvalidResourceHandle) if none with it is open.
  Subscription& find(orSubscription_t handle);
  static orSubscription_t handle(const Subscription& subscription);
  // Closes a subscription: invalidates its handle. Afterwards only `complete` is called, for tasks that were submitted
  // before.
  void close(Subscription& subscription);
  // Frees a closed subscription. None of its tasks may be outstanding.
  void recycle(Subscription& subscription);

  // Returns true if a subscription is open.
  bool any() const { return !open_.empty(); }
  // Returns true if an open subscription has the flag orSubscribeOperands.
  bool wants_operands() const;
  // Returns the open subscription with the flag orSubscribeTime, which is the time source. May be null.
  Subscription* time_source() const;
  // Returns true if callbacks may still be called, also those of closed subscriptions.
  bool may_call() const { return !open_.empty() || closing_ > 0; }

  // Calls `submit` for a new task, whose `correlation` it sets. Returns the task's number for the functions below.
  // Returns 0 and calls nothing if the host is out of memory.
  uint32_t submitted(orTaskInfo& task) noexcept;
  // Returns the result of a task, for reading and writing. Valid until completed().
  TaskResult& result(uint32_t number) { return observed_tasks_[number - 1].result; }
  // Calls `duration` until a subscription supplies one, and sets `nanoseconds` to it. Returns false and leaves
  // `nanoseconds` unchanged if none does.
  bool duration(uint32_t number, orTaskInfo& task, uint64_t& nanoseconds) noexcept;
  // Call `engine` and `host` of the time source and return the result. Return 0 if the time source has no such callback
  // or has not seen the task.
  int engine(uint32_t number, orTaskInfo& task) noexcept;
  uint64_t host_time(uint32_t number, orTaskInfo& task) noexcept;
  // Calls `capture` for a recorded task, whose `correlation` it sets.
  void captured(orTaskInfo& node) noexcept;
  // Calls `complete` of the subscriptions that have seen the task. The number is reused for later tasks.
  void completed(uint32_t number, orTaskCompletion& completion) noexcept;
  // Call `sync` and `memory` of all open subscriptions.
  void synced(const orSyncInfo& sync) noexcept;
  void memory(const orMemoryInfo& memory) noexcept;

 private:
  template <class Call>
  void query_time_source(uint32_t number, orTaskInfo& task, const char* callback, Call&& call) noexcept;

  struct Correlation {
    Subscription* subscription;
    uint64_t id;  // the correlation id that its `submit` has set
  };
  struct ObservedTask {
    std::vector<Correlation> correlations;  // one for each subscription that was open when the task was submitted
    TaskResult result;
  };

  HandleTable<Subscription> table_;
  std::vector<Subscription*> open_;
  size_t closing_ = 0;                       // number of closed subscriptions that are not recycled yet
  std::deque<ObservedTask> observed_tasks_;  // number n is at n - 1
  std::vector<uint32_t> free_;               // unused numbers, with capacity for all numbers
  uint64_t newest_ = 0;                      // the newest value of `correlation`
};

// Returns true if the calling thread is in a callback, and therefore holds the scheduler's mutex.
bool is_in_callback();
// Throws Error(orErrorNotSupported) if is_in_callback().
void check_not_in_callback();

}  // namespace openreg::driver
