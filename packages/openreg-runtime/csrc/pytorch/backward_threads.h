// SPDX-License-Identifier: BSD-3-Clause
// The query for autograd's threads of this device type.
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Returns true if PyTorch has run a backward pass that involves this device type, and so has autograd threads for its
// devices. Thread-safe.
OPENREG_RUNTIME_API bool backward_has_run() noexcept;

}  // namespace openreg::runtime
