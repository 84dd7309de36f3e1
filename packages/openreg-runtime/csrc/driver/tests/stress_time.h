// SPDX-License-Identifier: BSD-3-Clause
// An observer that keeps the time comes and goes while everything else goes on: the device changes from one way of
// running work to the other and back, whatever is queued, fails or is lost meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

// What one subscription has been told. No lock: the device calls one callback at a time.
struct Timekeeper {
  uint64_t submits = 0;
  uint64_t completes = 0;
  uint64_t answers = 0;

  static orSubscriber table() {
    orSubscriber table{};
    table.size = sizeof(table);
    table.version = OPENREG_SUBSCRIBER_VERSION;
    table.flags = orSubscribeTime;
    table.submit = [](void* user, const orTaskInfo*, uint64_t*) { ++static_cast<Timekeeper*>(user)->submits; };
    table.complete = [](void* user, const orTaskCompletion* task) {
      CHECK(task->begin <= task->end && task->engine >= -1 && task->engine < 3);
      ++static_cast<Timekeeper*>(user)->completes;
    };
    table.duration = [](void* user, const orTaskInfo* task, uint64_t* nanoseconds) {
      *nanoseconds = 1000 + task->ticket % 5000;
      return static_cast<int>(++static_cast<Timekeeper*>(user)->answers % 8 != 0);
    };
    table.engine = [](void*, const orTaskInfo* task) { return static_cast<int>(task->queue % 4) - 1; };
    table.host = [](void*, const orTaskInfo* task) { return task->ticket % 3000; };
    return table;
  }
};

inline void keep_time_until_stopped(uint64_t seed) {
  Random random(seed);
  while (!stop) {
    Timekeeper keeper;
    const orSubscriber table = Timekeeper::table();
    orSubscription_t subscription = nullptr;
    CHECK(orSubscribe(&table, &keeper, &subscription) == orSuccess);
    orSubscription_t second = nullptr;
    CHECK(orSubscribe(&table, &keeper, &second) == orErrorIllegalState);
    for (uint64_t i = 0; i < pick(random, 400); ++i) {
      const orKernel kernel{"timed", [](void*, char*, size_t) { return orSuccess; }, nullptr, nullptr};
      orLaunchKernel(nullptr, &kernel);  // refused while another part has failed the device
    }
    pause_milliseconds(pick(random, 10));
    CHECK(orUnsubscribe(subscription) == orSuccess);
    CHECK(keeper.completes == keeper.submits);
    pause_milliseconds(pick(random, 30));
  }
}

}  // namespace stress
