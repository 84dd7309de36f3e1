// SPDX-License-Identifier: BSD-3-Clause
// Errors inside the driver: thrown as Error, turned into a code and a per-thread message at the C API (guarded(),
// driver.h).
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "openreg.h"

namespace openreg::driver {

class Error : public std::exception {
 public:
  Error(orError_t code, std::string message) : code_(code), message_(std::move(message)) {}
  orError_t code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  orError_t code_;
  std::string message_;
};

template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Throws unless `condition` holds. The parts after the code say what is wrong and the way out.
#define OPENREG_DRIVER_CHECK(condition, code, ...)                                  \
  do {                                                                              \
    if (!(condition)) {                                                             \
      throw ::openreg::driver::Error((code), ::openreg::driver::join(__VA_ARGS__)); \
    }                                                                               \
  } while (false)

// Throws Error(orErrorInvalidValue) that names the argument when it is null.
inline void check_pointer(const void* pointer, const char* name) {
  OPENREG_DRIVER_CHECK(pointer != nullptr, orErrorInvalidValue, "argument `", name, "` is null");
}

// Stores the failure of `function` for orGetLastError() of this thread and returns the code. Never throws.
orError_t record_failure(orError_t code, const char* function, const char* message) noexcept;

}  // namespace openreg::driver
