// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the error state is a register of the card, or what its last interrupt said.
#include "device.h"

#include "error.h"

namespace openreg::driver {

void Device::refuse_work() const {
  OPENREG_DRIVER_CHECK(!lost, orErrorDeviceLost, "device ", index, " is lost: ", failure,
                       "; start the process again to use it");
  throw Error(orErrorLaunchFailure, join("device ", index, " is in an error state: ", failure,
                                         "; later work was skipped, reset the device to use it again"));
}

void Device::check_healthy_since(uint64_t resets_before) const {
  check_healthy();
  OPENREG_DRIVER_CHECK(resets == resets_before, orErrorLaunchFailure, "device ", index,
                       " failed, and another thread reset it while this call waited; work was skipped, run it again");
}

int& current_device() {
  thread_local int index = 0;
  return index;
}

}  // namespace openreg::driver
