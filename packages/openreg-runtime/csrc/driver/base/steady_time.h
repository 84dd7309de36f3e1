// SPDX-License-Identifier: BSD-3-Clause
// now() reads the steady clock, which never goes backward and has no relation to the time of day.
#pragma once

#include <cstdint>

namespace openreg::driver {

// Returns the nanoseconds of the steady clock. Thread-safe.
uint64_t now();

}  // namespace openreg::driver
