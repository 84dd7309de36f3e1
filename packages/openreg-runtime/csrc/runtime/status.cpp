// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/status.h"

#include <string>

namespace openreg::runtime {

namespace {

std::string describe(orError_t status) {
  // The driver answers "not ready" without calling it a failure, so no message of this thread belongs to it.
  if (status == orErrorNotReady) {
    return orGetErrorString(status);
  }
  return orGetLastErrorMessage();
}

}  // namespace

void throw_status(orError_t status, c10::SourceLocation location) {
  std::string message = describe(status);
  orGetLastError();  // handed on as an exception, so it is not pending any more
  switch (status) {
    case orErrorMemoryAllocation:
      throw c10::OutOfMemoryError(location, std::move(message));
    case orErrorLaunchFailure:
      throw c10::AcceleratorError(location, static_cast<int32_t>(status), message + " (torch.openreg.reset_device())");
    case orErrorDeviceLost:
    case orErrorStreamCaptureUnsupported:
    case orErrorStreamCaptureInvalidated:
      throw c10::AcceleratorError(location, static_cast<int32_t>(status), std::move(message));
    case orErrorInvalidValue:
      throw c10::ValueError(location, std::move(message));
    case orErrorNotSupported:
      throw c10::NotImplementedError(location, std::move(message));
    case orErrorForkedChild:
      throw c10::Error(location, "Cannot re-initialize OpenReg in forked subprocess. " + message);
    default:
      throw c10::Error(location, std::move(message));
  }
}

void warn_status(orError_t status) noexcept {
  try {
    const std::string message = describe(status);
    orGetLastError();
    TORCH_WARN(message);
  } catch (...) {
    // A warning that Python turns into an error cannot leave a path that must not throw.
  }
}

}  // namespace openreg::runtime
