// SPDX-License-Identifier: BSD-3-Clause
// Tests of subscriptions with callbacks in C++, which may throw exceptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks_common.h"
#include "openreg.h"

namespace checks {

struct Notes {
  std::vector<uint64_t> submitted;
  std::vector<uint64_t> completed;
  std::vector<std::string> names;
  std::vector<orOperand> operands;
};

inline orSubscriber note_taker() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands;
  table.submit = [](void* user, const orTaskInfo* task, uint64_t* correlation) {
    auto* notes = static_cast<Notes*>(user);
    *correlation = 100 + notes->submitted.size();
    notes->submitted.push_back(*correlation);
    notes->names.emplace_back(task->name == nullptr ? "" : task->name);
    notes->operands.insert(notes->operands.end(), task->operands, task->operands + task->operand_count);
  };
  table.complete = [](void* user, const orTaskCompletion* completion) {
    CHECK(completion->begin <= completion->end && completion->status == orSuccess);
    static_cast<Notes*>(user)->completed.push_back(completion->correlation);
  };
  return table;
}

inline void an_observer_sees_each_task_complete_once() {
  Notes notes;
  const orSubscriber table = note_taker();
  orSubscription_t subscription = nullptr;
  CHECK(orOperandsWanted() == 0);
  CHECK_OK(orSubscribe(&table, &notes, &subscription));
  CHECK(orOperandsWanted() == 1);
  void* address = allocate(kPage);
  launch(nullptr, [] {});
  CHECK_OK(orMemsetAsync(address, 1, 16, nullptr));
  CHECK_OK(orUnsubscribe(subscription));
  launch(nullptr, [] {});
  CHECK_OK(orDeviceSynchronize());
  CHECK(notes.submitted == std::vector<uint64_t>({100, 101}) && notes.completed == notes.submitted);
  CHECK(notes.names == std::vector<std::string>({"check", ""}));
  CHECK(notes.operands.size() == 1 && notes.operands[0].address == address && notes.operands[0].size == 16 &&
        notes.operands[0].access == orAccessWrite);
  CHECK(orUnsubscribe(subscription) == orErrorInvalidResourceHandle);
  CHECK_OK(orFree(address));
}

// Throws in each callback in turn. Launches of the program succeed nevertheless, and another observer receives all its
// callbacks.
template <class Thrown>
void throws_in_each_callback(const Thrown& thrown, const char* words) {
  static const Thrown* what = nullptr;
  what = &thrown;
  Notes notes;
  const orSubscriber healthy = note_taker();
  orSubscription_t listening = nullptr;
  CHECK_OK(orSubscribe(&healthy, &notes, &listening));
  constexpr const char* kCallbacks[] = {"submit", "complete", "sync", "memory"};
  for (size_t i = 0; i < std::size(kCallbacks); ++i) {
    orSubscriber table{};
    table.size = sizeof(table);
    table.version = OPENREG_SUBSCRIBER_VERSION;
    table.submit = i != 0 ? nullptr : +[](void*, const orTaskInfo*, uint64_t*) { throw *what; };
    table.complete = i != 1 ? nullptr : +[](void*, const orTaskCompletion*) { throw *what; };
    table.sync = i != 2 ? nullptr : +[](void*, const orSyncInfo*) { throw *what; };
    table.memory = i != 3 ? nullptr : +[](void*, const orMemoryInfo*) { throw *what; };
    orSubscription_t subscription = nullptr;
    CHECK_OK(orSubscribe(&table, nullptr, &subscription));
    bool ran = false;
    launch(nullptr, [&] { ran = true; });
    CHECK_OK(orDeviceSynchronize());
    CHECK_OK(orFree(allocate(kPage)));
    CHECK(ran);
    CHECK(orUnsubscribe(subscription) == orErrorIllegalState);
    CHECK(last_message_has(kCallbacks[i]) && last_message_has(words) && last_message_has("catch exceptions"));
    CHECK(orUnsubscribe(subscription) == orErrorInvalidResourceHandle);
  }
  CHECK_OK(orUnsubscribe(listening));
  CHECK(notes.submitted.size() == std::size(kCallbacks) && notes.completed == notes.submitted);
}

inline void a_callback_that_throws_is_reported_at_the_end() {
  throws_in_each_callback(std::runtime_error("on purpose"), "on purpose");
  throws_in_each_callback(7, "not a std::exception");
}

inline std::atomic<int> hooks{0};

inline void a_callback_calls_no_hook() {
  CHECK_OK(orSetEnqueueHook([] { ++hooks; }));
  int asked = 0;
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands;
  table.submit = [](void* user, const orTaskInfo*, uint64_t*) { *static_cast<int*>(user) += orOperandsWanted(); };
  orSubscription_t subscription = nullptr;
  CHECK_OK(orSubscribe(&table, &asked, &subscription));
  launch(nullptr, [] {});
  CHECK(asked == 1 && hooks == 0);
  CHECK(orOperandsWanted() == 1 && hooks == 1);
  CHECK_OK(orUnsubscribe(subscription));
}

}  // namespace checks
