// SPDX-License-Identifier: BSD-3-Clause
// Errors inside the driver. Functions throw Error; guarded() in api/driver.h converts it into a code and a per-thread
// message of the C API.
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

// Throws Error(code) unless `condition` holds. The arguments after the code form the message: the fault and the remedy.
#define OPENREG_DRIVER_CHECK(condition, code, ...)                                  \
  do {                                                                              \
    if (!(condition)) {                                                             \
      throw ::openreg::driver::Error((code), ::openreg::driver::join(__VA_ARGS__)); \
    }                                                                               \
  } while (false)

// Throws Error(orErrorInvalidValue) with the name of the argument if `pointer` is null.
inline void check_pointer(const void* pointer, const char* name) {
  OPENREG_DRIVER_CHECK(pointer != nullptr, orErrorInvalidValue, "argument `", name, "` is null");
}

// Stores the failure of `function` for orGetLastError() of the calling thread and returns `code`.
orError_t record_failure(orError_t code, const char* function, const char* message) noexcept;

}  // namespace openreg::driver
