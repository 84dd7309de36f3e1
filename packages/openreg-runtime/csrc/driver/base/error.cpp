// SPDX-License-Identifier: BSD-3-Clause
// The last error of each thread, and the names and texts of all codes.
#include "base/error.h"

#include <cstdio>

namespace openreg::driver {

namespace {

struct LastError {
  orError_t code = orSuccess;
  char message[2048] = {};
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

struct ErrorText {
  const char* name;
  const char* text;
};

ErrorText describe(orError_t error) {
  switch (error) {
    case orSuccess:
      return {"orSuccess", "no error"};
    case orErrorUnknown:
      return {"orErrorUnknown", "the host system failed in a way that no other code describes"};
    case orErrorNotReady:
      return {"orErrorNotReady", "tasks are not complete, or the call would block"};
    case orErrorInvalidValue:
      return {"orErrorInvalidValue", "an argument is null, out of range, or does not fit the others"};
    case orErrorMemoryAllocation:
      return {"orErrorMemoryAllocation", "out of memory"};
    case orErrorInvalidDevice:
      return {"orErrorInvalidDevice", "the device index is out of range"};
    case orErrorInvalidResourceHandle:
      return {"orErrorInvalidResourceHandle", "the stream, event, graph or semaphore does not exist or was destroyed"};
    case orErrorInvalidDevicePointer:
      return {"orErrorInvalidDevicePointer", "the address is not inside a live allocation"};
    case orErrorInvalidMemcpyDirection:
      return {"orErrorInvalidMemcpyDirection", "the kind of copy does not fit its addresses"};
    case orErrorInvalidConfiguration:
      return {"orErrorInvalidConfiguration", "an environment variable has a value that is refused"};
    case orErrorLaunchFailure:
      return {"orErrorLaunchFailure", "a kernel or a wait failed; orDeviceReset() makes the device usable again"};
    case orErrorForkedChild:
      return {"orErrorForkedChild", "the device was used before fork() and cannot be used in the child"};
    case orErrorDeinitialized:
      return {"orErrorDeinitialized", "the process is exiting"};
    case orErrorNotSupported:
      return {"orErrorNotSupported", "not supported on this device or on this thread"};
    case orErrorDeviceLost:
      return {"orErrorDeviceLost", "the device is gone until the process ends"};
    case orErrorStreamCaptureUnsupported:
      return {"orErrorStreamCaptureUnsupported", "the call cannot be part of a capture, or conflicts with one"};
    case orErrorStreamCaptureInvalidated:
      return {"orErrorStreamCaptureInvalidated",
              "the capture was invalidated by an earlier call and can only be ended"};
    case orErrorIllegalState:
      return {"orErrorIllegalState", "the stream or semaphore is not in the state that the call needs"};
  }
  return {"unknown code", "the code is not one of orError_t"};
}

}  // namespace

orError_t record_failure(orError_t code, const char* function, const char* message) noexcept {
  LastError& error = last_error();
  error.code = code;
  if (code == orErrorInvalidConfiguration) {  // any function may be the first to read the settings; omit its name
    std::snprintf(error.message, sizeof(error.message), "%s", message);
  } else {
    std::snprintf(error.message, sizeof(error.message), "%s: %s", function, message);
  }
  return code;
}

}  // namespace openreg::driver

using openreg::driver::describe;
using openreg::driver::last_error;

const char* orGetErrorName(orError_t error) {
  return describe(error).name;
}

const char* orGetErrorString(orError_t error) {
  return describe(error).text;
}

orError_t orGetLastError(void) {
  const orError_t code = last_error().code;
  last_error().code = orSuccess;
  return code;
}

orError_t orPeekAtLastError(void) {
  return last_error().code;
}

const char* orGetLastErrorMessage(void) {
  return last_error().message;
}
