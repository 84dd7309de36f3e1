// SPDX-License-Identifier: BSD-3-Clause
// Who is told what happens on the device, and which tasks they have seen.
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
  size_t outstanding = 0;  // submits that it saw and whose complete it has not seen
  char failure[256] = {};  // which callback threw what; from then on none is called
};

// How a task went, for those who saw it being submitted.
struct TaskResult {
  uint64_t launched = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  int engine = -1;
  orError_t status = orSuccess;
  bool skipped = false;
};

// Calls the callbacks, in the order of the subscriptions. Knows nothing of queues. Everything is called with the
// scheduler's mutex held; callbacks are, too.
class SubscriberList {
 public:
  // Throws Error(orErrorInvalidValue) for a table that this version does not know.
  Subscription& subscribe(const orSubscriber& table, void* user);
  // Throws Error(orErrorInvalidResourceHandle).
  Subscription& find(orSubscription_t handle);
  static orSubscription_t handle(const Subscription& subscription);
  // From now on the handle is refused, and of all callbacks only `complete` is called, for what has been submitted.
  void close(Subscription& subscription);
  // After close(), when nothing is outstanding.
  void recycle(Subscription& subscription);

  // Whether anybody is subscribed.
  bool any() const { return !open_.empty(); }
  bool wants_operands() const;
  // The open subscription that keeps the time, null without one.
  Subscription* time_source() const;
  // Whether any callback may be called, also for what ended subscriptions have seen.
  bool may_call() const { return !open_.empty() || closing_ > 0; }

  // Tells of a task; `correlation` of the argument is set here. The result is the task's number for the calls below, 0
  // when it could not be noted for want of memory; then nobody was told.
  uint32_t submitted(orTaskInfo& task) noexcept;
  TaskResult& result(uint32_t task) { return observed_tasks_[task - 1].result; }
  // The first answer, or false when there is none.
  bool duration(uint32_t number, orTaskInfo& task, uint64_t& nanoseconds) noexcept;
  // What the observer that keeps the time says; 0 where it says nothing or has not seen the task.
  int engine(uint32_t number, orTaskInfo& task) noexcept;
  uint64_t host_time(uint32_t number, orTaskInfo& task) noexcept;
  // Tells of a node; its correlation is set here.
  void captured(orTaskInfo& node) noexcept;
  // Tells those who saw it; the number is used again.
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
    std::vector<Correlation> correlations;  // of those who saw the submit
    TaskResult result;
  };

  HandleTable<Subscription> table_;
  std::vector<Subscription*> open_;
  size_t closing_ = 0;  // closed and not recycled
  std::deque<ObservedTask> observed_tasks_;
  std::vector<uint32_t> free_;  // numbers, with capacity for all of them
  uint64_t newest_ = 0;
};

// Throws Error(orErrorNotSupported) when the calling thread is in a callback.
void check_not_in_callback();

}  // namespace openreg::driver
