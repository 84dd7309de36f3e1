// SPDX-License-Identifier: BSD-3-Clause
// Fault injection for collectives, by OPENREG_FAULTS (source: orRegisterFaultKind).
#pragma once

#include <c10/core/Device.h>

#include "progress/operation.h"

namespace openreg::distributed {

// Registers the fault kinds drop, delay and kill with the driver. Called once, before the device is used.
void register_faults();
// Counts a call on `device` and returns the fault that is injected into it.
CollectiveFault next_fault(c10::Device device);

}  // namespace openreg::distributed
