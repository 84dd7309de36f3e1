// SPDX-License-Identifier: BSD-3-Clause
#include "minimal/selection.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <c10/util/env.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "support/setting.h"

namespace openreg::ops::minimal {

namespace {

constexpr const char* kNamespace = "aten::";
constexpr const char* kSelection = "OPENREG_OPS";
constexpr const char* kLeaveOut = "OPENREG_OPS_LEAVE_OUT";

std::string text_left_out() {
  return c10::utils::get_env(kLeaveOut).value_or("");
}

const std::vector<std::string>& left_out() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> parts;
    std::istringstream list(text_left_out());
    for (std::string part; std::getline(list, part, ',');) {
      parts.push_back(part);
    }
    return parts;
  }();
  return names;
}

}  // namespace

void check_settings() {
  choice(kSelection, {"full", "minimal"});
  for (const std::string& name : left_out()) {
    const bool known =
        std::any_of(kSet.begin(), kSet.end(), [&](const char* ours) { return kNamespace + std::string(ours) == name; });
    TORCH_CHECK_VALUE(known, "environment variable ", kLeaveOut, "='", text_left_out(), "' is not accepted: '", name,
                      "' is not in the minimal set; unset it, or give names of the set, separated by commas, and start "
                      "the process again: ",
                      kNamespace, c10::Join(std::string(", ") + kNamespace, kSet));
  }
  TORCH_CHECK_VALUE(
      left_out().empty() || is_minimal_only(), "environment variable ", kLeaveOut, "='", text_left_out(),
      "' is not accepted: it leaves operators out of the minimal set; give OPENREG_OPS=minimal as well, or "
      "unset it, and start the process again");
}

bool is_minimal_only() {
  static const bool is_minimal = c10::utils::get_env(kSelection) == "minimal";
  return is_minimal;
}

bool is_excluded(const char* name) {
  const auto& names = left_out();
  return is_minimal_only() && std::find(names.begin(), names.end(), kNamespace + std::string(name)) != names.end();
}

}  // namespace openreg::ops::minimal
