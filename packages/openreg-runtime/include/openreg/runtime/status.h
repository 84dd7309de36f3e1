// SPDX-License-Identifier: BSD-3-Clause
// From the driver's status codes to PyTorch's exceptions.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Throws the exception that fits the code, with the driver's message of this thread:
//   orErrorMemoryAllocation    c10::OutOfMemoryError    torch.OutOfMemoryError
//   orErrorLaunchFailure       c10::AcceleratorError    torch.AcceleratorError
//   orErrorDeviceLost          c10::AcceleratorError    torch.AcceleratorError
//   orErrorStreamCapture...    c10::AcceleratorError    torch.AcceleratorError
//   orErrorInvalidValue        c10::ValueError          ValueError
//   orErrorNotSupported        c10::NotImplementedError NotImplementedError
//   everything else            c10::Error               RuntimeError
[[noreturn]] OPENREG_RUNTIME_API void throw_status(orError_t status, c10::SourceLocation location);

// Warns instead, for destructors and other paths that must not throw.
OPENREG_RUNTIME_API void warn_status(orError_t status) noexcept;

}  // namespace openreg::runtime

// Throws unless the driver call succeeds.
#define OPENREG_CHECK(call)                                                                                    \
  do {                                                                                                         \
    const orError_t openreg_status = (call);                                                                   \
    if (C10_UNLIKELY(openreg_status != orSuccess)) {                                                           \
      ::openreg::runtime::throw_status(openreg_status, {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}); \
    }                                                                                                          \
  } while (false)

// The same where throwing is not allowed.
#define OPENREG_WARN(call)                             \
  do {                                                 \
    const orError_t openreg_status = (call);           \
    if (C10_UNLIKELY(openreg_status != orSuccess)) {   \
      ::openreg::runtime::warn_status(openreg_status); \
    }                                                  \
  } while (false)
