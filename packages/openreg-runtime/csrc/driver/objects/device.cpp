// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver reads the error state from a register of the device, or receives it with an interrupt.
#include "objects/device.h"

#include "base/error.h"

namespace openreg::driver {

void Device::throw_unhealthy() const {
  OPENREG_DRIVER_CHECK(!lost, orErrorDeviceLost, "device ", index, " is lost: ", failure,
                       "; start the process again to use it");
  throw Error(orErrorLaunchFailure, join("device ", index, " is in an error state: ", failure,
                                         "; later work was skipped, reset the device to use it again"));
}

void Device::check_healthy_since(uint64_t resets_before) const {
  check_healthy();
  OPENREG_DRIVER_CHECK(resets == resets_before, orErrorLaunchFailure, "device ", index,
                       " failed while this call waited; run the skipped work again, now that another thread has reset "
                       "the device");
}

void Device::throw_skipped() const {
  check_healthy();  // its message contains `failure`, which a reset clears
  throw Error(orErrorLaunchFailure,
              join("the event was recorded after work that may have been skipped, because device ", index,
                   " failed before it was done; run it and record the event again, now that the device was reset"));
}

int& current_device() {
  thread_local int index = 0;
  return index;
}

}  // namespace openreg::driver
