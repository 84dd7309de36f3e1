// SPDX-License-Identifier: BSD-3-Clause
// In this part of the stress program, a time source subscribes and unsubscribes while other threads use the device. The
// device thereby changes to simulated time and back, while tasks are queued, kernels fail and a device is lost.
#pragma once

#include <atomic>
#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

// Counts of the callbacks of one subscription. Needs no lock, because the device calls one callback at a time.
struct TimeSource {
  uint64_t submits = 0;
  uint64_t completes = 0;
  uint64_t answers = 0;

  static orSubscriber table() {
    orSubscriber table{};
    table.size = sizeof(table);
    table.version = OPENREG_SUBSCRIBER_VERSION;
    table.flags = orSubscribeTime;
    table.submit = [](void* user, const orTaskInfo*, uint64_t*) { ++static_cast<TimeSource*>(user)->submits; };
    table.complete = [](void* user, const orTaskCompletion* task) {
      CHECK(task->begin <= task->end && task->engine >= -1 && task->engine < 3);
      ++static_cast<TimeSource*>(user)->completes;
    };
    table.duration = [](void* user, const orTaskInfo* task, uint64_t* nanoseconds) {
      *nanoseconds = 1000 + task->ticket % 5000;
      return static_cast<int>(++static_cast<TimeSource*>(user)->answers % 8 != 0);
    };
    table.engine = [](void*, const orTaskInfo* task) { return static_cast<int>(task->queue % 4) - 1; };
    table.host = [](void*, const orTaskInfo* task) { return task->ticket % 3000; };
    return table;
  }
};

inline void keep_time_until_stopped(uint64_t seed) {
  Random random(seed);
  while (!stop) {
    TimeSource source;
    const orSubscriber table = TimeSource::table();
    orSubscription_t subscription = nullptr;
    CHECK(orSubscribe(&table, &source, &subscription) == orSuccess);
    orSubscription_t second = nullptr;
    CHECK(orSubscribe(&table, &source, &second) == orErrorIllegalState);
    const uint64_t launches = pick(random, 400);
    for (uint64_t i = 0; i < launches; ++i) {
      const orKernel kernel{"timed", [](void*, char*, size_t) { return orSuccess; }, nullptr, nullptr};
      orLaunchKernel(nullptr, &kernel);  // may fail, because another thread may have put the device into an error state
    }
    pause_milliseconds(pick(random, 10));
    CHECK(orUnsubscribe(subscription) == orSuccess);
    CHECK(source.completes == source.submits);
    pause_milliseconds(pick(random, 30));
  }
}

}  // namespace stress
