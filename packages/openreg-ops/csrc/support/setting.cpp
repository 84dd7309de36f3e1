// SPDX-License-Identifier: BSD-3-Clause
#include "support/setting.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <c10/util/env.h>

#include <algorithm>

namespace openreg::ops {

std::string choice(const char* variable, c10::ArrayRef<const char*> values) {
  const std::string value = c10::utils::get_env(variable).value_or(values.front());
  TORCH_CHECK_VALUE(std::find(values.begin(), values.end(), value) != values.end(), "environment variable ", variable,
                    "='", value, "' is not accepted; give ", c10::Join(", ", values.slice(0, values.size() - 1)),
                    " or ", values.back(), " or unset it, and start the process again");
  return value;
}

}  // namespace openreg::ops
