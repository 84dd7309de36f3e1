// SPDX-License-Identifier: BSD-3-Clause
// The texts of errors that calls of the driver return.
#pragma once

#include <string>

#include "openreg.h"

namespace openreg::runtime {

// Returns the message of the calling thread's last driver call, which returned `status`. Appends the Python call that
// fixes the failure, if there is one. Clears the driver's last error of the thread, because the caller reports it.
std::string take_message(orError_t status);

}  // namespace openreg::runtime
