// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the device has a counter, which the driver calibrates against the host's clock from time to time.
#include "base/steady_time.h"

#include <chrono>

namespace openreg::driver {

uint64_t now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace openreg::driver
