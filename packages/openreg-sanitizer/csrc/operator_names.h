// SPDX-License-Identifier: BSD-3-Clause
// Lists of operators by name, such as "aten::add".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace openreg::sanitizer {

template <size_t kSize>
using OperatorNameArray = std::array<std::string_view, kSize>;

template <size_t kSize>
bool contains(const OperatorNameArray<kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace openreg::sanitizer
