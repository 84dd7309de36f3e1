// SPDX-License-Identifier: BSD-3-Clause
// A query for autograd's threads. Autograd starts one thread per device at the first backward pass.
#pragma once

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Returns true if PyTorch has run a backward pass since this backend was loaded, and so has autograd threads for its
// devices. Thread-safe.
OPENREG_RUNTIME_API bool backward_has_run() noexcept;

}  // namespace openreg::runtime
