// SPDX-License-Identifier: BSD-3-Clause
// Failures that OPENREG_FAULTS orders for calls of process groups (source: orRegisterFaultKind).
#pragma once

#include <c10/core/Device.h>

#include "progress/operation.h"

namespace openreg::distributed {

// Adds the kinds drop, delay and kill to the device's; once, before the device is used.
void register_faults();
// Counts a call on a device, and says what is to become of it.
Injected next_fault(c10::Device device);

}  // namespace openreg::distributed
