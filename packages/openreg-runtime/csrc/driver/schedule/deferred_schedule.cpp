// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no counterpart, because a device executes tasks as soon as it can.
#include "schedule/deferred_schedule.h"

namespace openreg::driver {

bool DeferredSchedule::has_pending_wait(bool passive_counts) {
  bool demanded = false;
  bool met = false;
  for (const WaitRequest* request : requests_) {
    if (request->is_met()) {
      met = true;
    } else {
      demanded |= passive_counts || !request->is_passive();
    }
  }
  if (met) {
    met_.notify_all();
  }
  return demanded;
}

void DeferredSchedule::give_up_requests() {
  for (WaitRequest* request : requests_) {
    request->give_up();
  }
  met_.notify_all();
}

void DeferredSchedule::count_task() {
  for (WaitRequest* request : requests_) {
    request->count_task();
  }
}

}  // namespace openreg::driver
