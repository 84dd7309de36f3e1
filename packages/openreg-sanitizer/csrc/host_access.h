// SPDX-License-Identifier: BSD-3-Clause
// Accesses of the host to pinned memory: operators on CPU tensors, seen through PyTorch's RecordFunction.
#pragma once

namespace openreg::sanitizer {

// Begins to watch operators on the CPU, when the program allocates its first pinned memory: other programs pay nothing.
// Does nothing if it has begun. Thread-safe.
void watch_host();
// Ends it. Thread-safe.
void stop_watching_host();

}  // namespace openreg::sanitizer
