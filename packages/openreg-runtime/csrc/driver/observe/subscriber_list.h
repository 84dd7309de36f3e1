// SPDX-License-Identifier: BSD-3-Clause
// The subscribers of the driver, and the tasks that they have seen.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/handle_table.h"
#include "openreg.h"

namespace openreg::driver {

struct Subscription : HandleSlot {
  static constexpr uint32_t kHandleKind = 4;

  orSubscriber table{};
  void* user = nullptr;
  size_t outstanding = 0;  // tasks that were submitted while it was open and are not complete
  char failure[256] = {};  // callback that threw, and its exception; once set, no callback is called
};

// The result of a task for its `complete` callbacks. Times are nanoseconds of the scheduler's `Clock`.
struct TaskResult {
  uint64_t launched = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  int engine = -1;
  orError_t status = orSuccess;
  bool skipped = false;
};

// A list of subscriptions, which calls their callbacks in the order of subscription. Does not access queues. The caller
// holds the scheduler's mutex, also while callbacks run.
class SubscriberList {
 public:
  // Copies `table`. Throws Error(orErrorInvalidValue) if its version, size or flags are unknown or it has no callback.
  Subscription& subscribe(const orSubscriber& table, void* user);
  // Throws Error(orErrorInvalidResourceHandle) if no subscription with this handle is open.
  Subscription& find(orSubscription_t handle);
  static orSubscription_t handle(const Subscription& subscription);
  // Invalidates the handle. Afterwards only `complete` is called, for tasks that were submitted before.
  void close(Subscription& subscription);
  // Frees a closed subscription. None of its tasks may be outstanding.
  void recycle(Subscription& subscription);

  // Returns true if a subscription is open.
  bool any() const { return !open_.empty(); }
  bool wants_operands() const;
  // Returns the open subscription with orSubscribeTime. May be null.
  Subscription* time_source() const;
  // Returns true if a callback may be called, including those of closed subscriptions.
  bool may_call() const { return !open_.empty() || closing_ > 0; }

  // Calls `submit` for a task, whose `correlation` it sets. Returns the task's number for the functions below, or 0,
  // without a call, if memory is lacking.
  uint32_t submitted(orTaskInfo& task) noexcept;
  // Valid until completed().
  TaskResult& result(uint32_t task) { return observed_tasks_[task - 1].result; }
  // Sets `nanoseconds` to the first duration that a subscription supplies. Returns false if none does.
  bool duration(uint32_t number, orTaskInfo& task, uint64_t& nanoseconds) noexcept;
  // Return what the time source supplies, or 0 if it has no such callback or has not seen the task.
  int engine(uint32_t number, orTaskInfo& task) noexcept;
  uint64_t host_time(uint32_t number, orTaskInfo& task) noexcept;
  // Calls `capture` for a node, whose `correlation` it sets.
  void captured(orTaskInfo& node) noexcept;
  // Calls `complete` of the subscriptions that have seen the task. Its number is reused afterwards.
  void completed(uint32_t number, orTaskCompletion& completion) noexcept;
  void synced(const orSyncInfo& sync) noexcept;
  void memory(const orMemoryInfo& memory) noexcept;

 private:
  template <class Call>
  void query_time_source(uint32_t number, orTaskInfo& task, const char* callback, Call&& call) noexcept;

  struct Correlation {
    Subscription* subscription;
    uint64_t id;
  };
  struct ObservedTask {
    std::vector<Correlation> correlations;  // of the subscriptions that were open when it was submitted
    TaskResult result;
  };

  HandleTable<Subscription> table_;
  std::vector<Subscription*> open_;
  size_t closing_ = 0;  // closed subscriptions that are not recycled yet
  std::deque<ObservedTask> observed_tasks_;
  std::vector<uint32_t> free_;  // unused task numbers, with capacity for all numbers
  uint64_t newest_ = 0;
};

// Throws Error(orErrorNotSupported) if the calling thread is in a callback, because callbacks run under the scheduler's
// mutex.
void check_not_in_callback();

}  // namespace openreg::driver
