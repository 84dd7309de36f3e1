// SPDX-License-Identifier: BSD-3-Clause
// Fault injection for process groups: the variable OPENREG_FAULTS makes the n-th call fail on purpose
// (orRegisterFaultKind() in openreg.h).
#pragma once

#include <c10/core/Device.h>

#include "progress/operation.h"

namespace openreg::distributed {

// Registers the fault kinds drop, delay and kill with the driver. Called once, before the device is used.
void register_faults();
// Counts a call on `device`, and returns the fault to inject into it, or kNothing.
CollectiveFault next_fault(c10::Device device);

}  // namespace openreg::distributed
