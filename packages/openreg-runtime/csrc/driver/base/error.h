// SPDX-License-Identifier: BSD-3-Clause
// Error is the exception that functions of the driver throw. guarded() in api/driver.h catches it at the boundary of
// the C API and converts it to an error code and a message per thread.
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "openreg.h"

namespace openreg::driver {

// An exception with the code and the message that the C API returns.
class Error : public std::exception {
 public:
  Error(orError_t code, std::string message) : code_(code), message_(std::move(message)) {}
  orError_t code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  orError_t code_;
  std::string message_;
};

// Returns the concatenation of `parts`, each formatted by operator<<.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Throws Error(code) unless `condition` is true. The arguments after the code are concatenated to the message, which
// states what is wrong and what to do.
#define OPENREG_DRIVER_CHECK(condition, code, ...)                                  \
  do {                                                                              \
    if (!(condition)) {                                                             \
      throw ::openreg::driver::Error((code), ::openreg::driver::join(__VA_ARGS__)); \
    }                                                                               \
  } while (false)

// Throws Error(orErrorInvalidValue) with the name of the argument if `pointer` is null.
inline void check_pointer(const void* pointer, const char* name) {
  OPENREG_DRIVER_CHECK(pointer != nullptr, orErrorInvalidValue, "argument `", name, "` is null; pass an address");
}

// Stores `code` and `message` as the calling thread's last failure, for orGetLastError() and orGetLastErrorMessage(),
// and returns `code`. `function` is the C function that fails; its name becomes part of the message.
orError_t record_failure(orError_t code, const char* function, const char* message) noexcept;

}  // namespace openreg::driver
