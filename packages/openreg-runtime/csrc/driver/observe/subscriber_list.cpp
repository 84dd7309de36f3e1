// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the command processor writes records into a ring in memory, and the driver passes them to subscribers.
#include "observe/subscriber_list.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/error.h"

namespace openreg::driver {

namespace {

// Returns a thread-local flag, for reading and writing, that is true while the thread is in a callback.
bool& in_callback() {
  thread_local bool value = false;
  return value;
}

// Calls a callback and catches what it throws, because that must not reach the engine or a thread that launches.
// orUnsubscribe() reports it.
template <class Call>
void run(Subscription& subscription, const char* callback, Call&& call) noexcept {
  if (subscription.failure[0] != 0) {
    return;
  }
  const auto note = [&](const char* what) {
    std::snprintf(subscription.failure, sizeof(subscription.failure), "`%s` threw an exception: %s", callback, what);
  };
  in_callback() = true;
  try {
    call();
  } catch (const std::exception& error) {
    note(error.what());
  } catch (...) {
    note("not a std::exception");
  }
  in_callback() = false;
}

bool has_a_callback(const orSubscriber& table) {
  return table.submit != nullptr || table.complete != nullptr || table.sync != nullptr || table.memory != nullptr ||
         table.capture != nullptr || table.duration != nullptr || table.engine != nullptr || table.host != nullptr;
}

// Returns the task as one subscription sees it. Operands of kernels are included only if the subscription requests
// them. Operands of copies and fills are always included, because the task itself contains them.
orTaskInfo seen_by(const Subscription& subscription, const orTaskInfo& task) {
  orTaskInfo result = task;
  const bool is_known = task.kind == orTaskCopy || task.kind == orTaskFill;
  if (!is_known && (subscription.table.flags & orSubscribeOperands) == 0) {
    result.operands = nullptr;
    result.operand_count = 0;
  }
  return result;
}

}  // namespace

bool is_in_callback() {
  return in_callback();
}

void check_not_in_callback() {
  OPENREG_DRIVER_CHECK(
      !in_callback(), orErrorNotSupported,
      "called by a callback of a subscription, which runs with the device's lock held and must not use "
      "the device; store what the call needs, and make it on another thread or after the callback has returned");
}

void SubscriberList::check(const orSubscriber& table) {
  OPENREG_DRIVER_CHECK(table.version == OPENREG_SUBSCRIBER_VERSION, orErrorInvalidValue, "the table has version ",
                       table.version, ", and this library knows version ", OPENREG_SUBSCRIBER_VERSION,
                       "; set it to OPENREG_SUBSCRIBER_VERSION and compile with the openreg.h of this library");
  OPENREG_DRIVER_CHECK(table.size == sizeof(orSubscriber), orErrorInvalidValue, "the table has ", table.size,
                       " bytes, and one of version ", OPENREG_SUBSCRIBER_VERSION, " has ", sizeof(orSubscriber),
                       "; set `size` to sizeof(orSubscriber) and compile with the openreg.h of this library");
  OPENREG_DRIVER_CHECK((table.flags & ~static_cast<unsigned int>(orSubscribeOperands | orSubscribeTime)) == 0,
                       orErrorInvalidValue, "flags ", table.flags,
                       " are unknown; pass 0, or some of orSubscribeOperands and orSubscribeTime");
  OPENREG_DRIVER_CHECK(has_a_callback(table), orErrorInvalidValue,
                       "all callbacks of the table are null; set those that you want to be called");
}

Subscription& SubscriberList::subscribe(const orSubscriber& table, void* user) {
  open_.reserve(open_.size() + 1);
  Subscription& subscription = table_.create();
  subscription.table = table;
  subscription.user = user;
  subscription.failure[0] = 0;
  open_.push_back(&subscription);
  return subscription;
}

Subscription& SubscriberList::find(orSubscription_t handle) {
  Subscription* subscription = table_.find(reinterpret_cast<uintptr_t>(handle));
  OPENREG_DRIVER_CHECK(subscription != nullptr, orErrorInvalidResourceHandle, "subscription ", handle,
                       " does not exist or was ended before; pass each subscription of orSubscribe() once");
  return *subscription;
}

orSubscription_t SubscriberList::handle(const Subscription& subscription) {
  return reinterpret_cast<orSubscription_t>(HandleTable<Subscription>::handle(subscription));
}

void SubscriberList::close(Subscription& subscription) {
  HandleTable<Subscription>::invalidate(subscription);
  std::erase(open_, &subscription);
  ++closing_;
}

void SubscriberList::recycle(Subscription& subscription) {
  table_.recycle(subscription);
  --closing_;
}

Subscription* SubscriberList::time_source() const {
  const auto found = std::find_if(open_.begin(), open_.end(), [](const Subscription* subscription) {
    return (subscription->table.flags & orSubscribeTime) != 0;
  });
  return found == open_.end() ? nullptr : *found;
}

bool SubscriberList::wants_operands() const {
  return std::any_of(open_.begin(), open_.end(), [](const Subscription* subscription) {
    return (subscription->table.flags & orSubscribeOperands) != 0;
  });
}

uint32_t SubscriberList::submitted(orTaskInfo& task) noexcept {
  try {
    if (free_.empty()) {
      free_.reserve(observed_tasks_.size() + 1);
      observed_tasks_.emplace_back();
      free_.push_back(static_cast<uint32_t>(observed_tasks_.size()));
    }
    observed_tasks_[free_.back() - 1].correlations.reserve(open_.size());
  } catch (const std::exception&) {
    return 0;
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  ObservedTask& record = observed_tasks_[number - 1];
  record.result = {};
  task.correlation = ++newest_;
  for (Subscription* subscription : open_) {
    uint64_t correlation = task.correlation;
    if (subscription->table.submit != nullptr) {
      const orTaskInfo info = seen_by(*subscription, task);
      run(*subscription, "submit", [&] { subscription->table.submit(subscription->user, &info, &correlation); });
    }
    record.correlations.push_back({subscription, correlation});
  }
  return number;
}

bool SubscriberList::duration(uint32_t number, orTaskInfo& task, uint64_t& nanoseconds) noexcept {
  for (const Correlation& correlation : observed_tasks_[number - 1].correlations) {
    const orSubscriber& table = correlation.subscription->table;
    int answered = 0;
    uint64_t answer = 0;  // a callback may write and then return 0, or throw
    if (table.duration != nullptr && correlation.subscription->alive) {
      task.correlation = correlation.id;
      run(*correlation.subscription, "duration",
          [&] { answered = table.duration(correlation.subscription->user, &task, &answer); });
    }
    if (answered != 0) {
      nanoseconds = answer;
      return true;
    }
  }
  return false;
}

template <class Call>
void SubscriberList::query_time_source(uint32_t number, orTaskInfo& task, const char* callback, Call&& call) noexcept {
  for (const Correlation& correlation : observed_tasks_[number - 1].correlations) {
    Subscription& subscription = *correlation.subscription;
    if ((subscription.table.flags & orSubscribeTime) != 0 && subscription.alive) {
      task.correlation = correlation.id;
      run(subscription, callback, [&] { call(subscription.table, subscription.user); });
    }
  }
}

int SubscriberList::engine(uint32_t number, orTaskInfo& task) noexcept {
  int answer = 0;
  query_time_source(number, task, "engine", [&](const orSubscriber& table, void* user) {
    answer = table.engine == nullptr ? 0 : table.engine(user, &task);
  });
  return answer;
}

uint64_t SubscriberList::host_time(uint32_t number, orTaskInfo& task) noexcept {
  uint64_t answer = 0;
  query_time_source(number, task, "host", [&](const orSubscriber& table, void* user) {
    answer = table.host == nullptr ? 0 : table.host(user, &task);
  });
  return answer;
}

void SubscriberList::captured(orTaskInfo& node) noexcept {
  node.correlation = ++newest_;
  for (Subscription* subscription : open_) {
    if (subscription->table.capture != nullptr) {
      const orTaskInfo info = seen_by(*subscription, node);
      run(*subscription, "capture", [&] { subscription->table.capture(subscription->user, &info); });
    }
  }
}

void SubscriberList::completed(uint32_t number, orTaskCompletion& completion) noexcept {
  ObservedTask& record = observed_tasks_[number - 1];
  for (const Correlation& correlation : record.correlations) {
    const orSubscriber& table = correlation.subscription->table;
    if (table.complete != nullptr) {
      completion.correlation = correlation.id;
      run(*correlation.subscription, "complete", [&] { table.complete(correlation.subscription->user, &completion); });
    }
  }
  record.correlations.clear();
  free_.push_back(number);  // does not allocate, because free_ has capacity for all numbers
}

void SubscriberList::synced(const orSyncInfo& sync) noexcept {
  for (Subscription* subscription : open_) {
    if (subscription->table.sync != nullptr) {
      run(*subscription, "sync", [&] { subscription->table.sync(subscription->user, &sync); });
    }
  }
}

void SubscriberList::memory(const orMemoryInfo& memory) noexcept {
  for (Subscription* subscription : open_) {
    if (subscription->table.memory != nullptr) {
      run(*subscription, "memory", [&] { subscription->table.memory(subscription->user, &memory); });
    }
  }
}

}  // namespace openreg::driver
