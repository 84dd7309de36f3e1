// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/status.h"

#include <exception>
#include <string>

#include "base/status_message.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

std::string take_message(orError_t status) {
  // orErrorNotReady is no failure in the driver, so the thread's last message does not belong to it.
  if (status == orErrorNotReady) {
    return orGetErrorString(status);
  }
  std::string message = orGetLastErrorMessage();
  orGetLastError();
  return status == orErrorLaunchFailure ? message + " (torch.openreg.reset_device())" : message;
}

const char* current_exception_text() noexcept {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

void throw_status(orError_t status, c10::SourceLocation location) {
  std::string message = take_message(status);
  switch (status) {
    case orErrorMemoryAllocation:
      throw c10::OutOfMemoryError(location, std::move(message));
    case orErrorLaunchFailure:
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
    case orErrorDeinitialized:
      park_if_finalized();  // this thread blocked on the device while another one ended the process
      throw c10::Error(location, std::move(message));
    default:
      throw c10::Error(location, std::move(message));
  }
}

void warn_status(orError_t status) noexcept {
  try {
    TORCH_WARN(take_message(status));
  } catch (...) {
    // Python may turn the warning into an exception, and this function must not throw.
  }
}

}  // namespace openreg::runtime
