// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "openreg.h"

namespace openreg::runtime {

// The text of a driver call of this thread that returned `status`, with what helps against it in Python. The caller
// hands it on, so it is not pending in the driver any more.
std::string take_message(orError_t status);

}  // namespace openreg::runtime
