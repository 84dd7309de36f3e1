// SPDX-License-Identifier: BSD-3-Clause
// C functions on subscriptions.
#include "api/driver.h"

using namespace openreg::driver;

orError_t orSubscribe(const orSubscriber* table, void* user, orSubscription_t* subscription) {
  return guarded(__func__, [&] {
    check_pointer(table, "table");
    check_pointer(subscription, "subscription");
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    *subscription = driver.scheduler.subscribe(*table, user, lock);
    Driver::set_observed(true);
    return orSuccess;
  });
}

orError_t orUnsubscribe(orSubscription_t subscription) {
  return guarded_release(__func__, [&] {
    Driver& driver = Driver::get();
    Lock lock = driver.scheduler.lock();
    // Runs whether or not unsubscribe() throws. Without subscriptions, calls need not check that they are not made by a
    // callback.
    const auto update = [&] { Driver::set_observed(driver.scheduler.subscribers(lock).may_call()); };
    try {
      driver.scheduler.unsubscribe(subscription, lock);
    } catch (...) {
      update();
      throw;
    }
    update();
    return orSuccess;
  });
}

int orOperandsWanted(void) {
  if (!Driver::operands_wanted()) [[likely]] {
    return 0;
  }
  if (!is_in_callback()) {  // the hook may acquire a lock, such as Python's GIL, that a callback must not wait for
    Driver::call_enqueue_hook();
  }
  return 1;
}

orError_t orSetEnqueueHook(orEnqueueHook_t hook) {
  Driver::set_enqueue_hook(hook);
  return orSuccess;
}
