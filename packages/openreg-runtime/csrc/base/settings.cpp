// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace openreg::runtime {

namespace {

int read_num_threads() {
  const char* text = std::getenv("OPENREG_NUM_THREADS");
  if (text == nullptr) {
    return 0;
  }
  const std::string_view value(text);
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool parsed = error == std::errc() && end == value.data() + value.size();
  TORCH_CHECK_VALUE(parsed && number >= 1 && number <= 1024, "environment variable OPENREG_NUM_THREADS='", value,
                    "' is not accepted; give a whole number from 1 to 1024 or unset it, and start the process again");
  return number;
}

// Checks nothing, because the driver does not start with another value than 0 and 1.
bool read_poison() {
  const char* text = std::getenv("OPENREG_POISON");
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace

const RuntimeSettings& settings() {
  static const RuntimeSettings result{read_poison(), read_num_threads()};
  return result;
}

}  // namespace openreg::runtime
