// SPDX-License-Identifier: BSD-3-Clause
// Converts the driver's status codes to PyTorch's exceptions.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Throws the exception that corresponds to a code. Its text is the driver's last message of the calling thread, which
// this function clears. The columns are the code, the exception, and the exception in Python:
//   orErrorMemoryAllocation    c10::OutOfMemoryError    torch.OutOfMemoryError
//   orErrorLaunchFailure       c10::AcceleratorError    torch.AcceleratorError
//   orErrorDeviceLost          c10::AcceleratorError    torch.AcceleratorError
//   orErrorStreamCapture...    c10::AcceleratorError    torch.AcceleratorError
//   orErrorInvalidValue        c10::ValueError          ValueError
//   orErrorNotSupported        c10::NotImplementedError NotImplementedError
//   all others                 c10::Error               RuntimeError
// For orErrorDeinitialized, does not throw but blocks until the process ends if another thread has finalized Python,
// because unwinding would abort the process (see gil.h). Thread-safe.
[[noreturn]] OPENREG_RUNTIME_API void throw_status(orError_t status, c10::SourceLocation location);

// Same as `throw_status()`, except that it warns instead of throwing. Destructors and other code that must not throw
// use it. It is silent if Python turns the warning into an error.
OPENREG_RUNTIME_API void warn_status(orError_t status) noexcept;

}  // namespace openreg::runtime

// Calls throw_status() if the driver call does not return orSuccess.
#define OPENREG_CHECK(call)                                                                                    \
  do {                                                                                                         \
    const orError_t openreg_status = (call);                                                                   \
    if (C10_UNLIKELY(openreg_status != orSuccess)) {                                                           \
      ::openreg::runtime::throw_status(openreg_status, {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}); \
    }                                                                                                          \
  } while (false)

// Same as `OPENREG_CHECK()`, except that it calls warn_status().
#define OPENREG_WARN(call)                             \
  do {                                                 \
    const orError_t openreg_status = (call);           \
    if (C10_UNLIKELY(openreg_status != orSuccess)) {   \
      ::openreg::runtime::warn_status(openreg_status); \
    }                                                  \
  } while (false)
