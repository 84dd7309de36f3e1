// SPDX-License-Identifier: BSD-3-Clause
// Observes operators on CPU tensors in pinned memory, because a copy of the device may use that memory at the same
// time.
#pragma once

#include "operator_watch.h"

namespace openreg::sanitizer {

// Returns the watch that reports each operator on a pinned CPU tensor to Sanitizer::host_access(). It starts when the
// program allocates its first pinned memory, so that operators of other programs cost nothing more.
OperatorWatch& host_access_watch();

}  // namespace openreg::sanitizer
