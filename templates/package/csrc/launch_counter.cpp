// SPDX-License-Identifier: BSD-3-Clause
// What an observer looks like: a table of callbacks, which are called under the device's lock, on the thread that
// launches or on an engine's. They take a note and return; openreg.h says what they must not do.
#include "launch_counter.h"

#include "openreg/runtime/status.h"

namespace openreg::example {

LaunchCounter::LaunchCounter() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.submit = [](void* user, const orTaskInfo* task, uint64_t* /*correlation*/) {
    static_cast<LaunchCounter*>(user)->launched_ += task->kind == orTaskKernel;
  };
  table.complete = [](void* user, const orTaskCompletion* completion) {
    static_cast<LaunchCounter*>(user)->completed_ += completion->kind == orTaskKernel;
  };
  orSubscription_t subscription = nullptr;
  OPENREG_CHECK(orSubscribe(&table, this, &subscription));
  subscription_ = subscription;
}

LaunchCounter::~LaunchCounter() {
  if (const orSubscription_t subscription = subscription_.exchange(nullptr)) {
    OPENREG_WARN(orUnsubscribe(subscription));
  }
}

void LaunchCounter::stop() {
  if (const orSubscription_t subscription = subscription_.exchange(nullptr)) {
    OPENREG_CHECK(orUnsubscribe(subscription));
  }
}

}  // namespace openreg::example
