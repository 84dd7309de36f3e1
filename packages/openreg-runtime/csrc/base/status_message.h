// SPDX-License-Identifier: BSD-3-Clause
// The texts of errors that calls of the driver return, and of exceptions.
#pragma once

#include <string>

#include "openreg.h"

namespace openreg::runtime {

// Returns the error message of the calling thread's last driver call, which returned `status`. Appends the Python call
// that repairs the failure, if there is one. Clears the driver's last error of the thread, because the caller reports
// it. For orErrorNotReady, which is no failure, returns the text of the code and clears nothing.
std::string take_message(orError_t status);

// Returns the text of the exception that the calling catch block handles, without c10's backtrace. Valid until the end
// of that block. Allocates nothing, because the host may be out of memory.
const char* current_exception_text() noexcept;

}  // namespace openreg::runtime
