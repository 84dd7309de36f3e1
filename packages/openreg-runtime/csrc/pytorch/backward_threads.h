// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Whether PyTorch has run a backward pass with a node on this device type, and so has threads of its own for the
// devices. Never throws.
OPENREG_RUNTIME_API bool backward_has_run() noexcept;

}  // namespace openreg::runtime
