// SPDX-License-Identifier: BSD-3-Clause
// Error messages of driver calls.
#pragma once

#include <string>

#include "openreg.h"

namespace openreg::runtime {

// Returns the message of this thread's last driver call, which returned `status`, with the Python call that fixes the
// failure, if any. Clears the driver's last error of this thread, because the caller reports it.
std::string take_message(orError_t status);

}  // namespace openreg::runtime
