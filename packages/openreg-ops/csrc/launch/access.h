// SPDX-License-Identifier: BSD-3-Clause
// What a kernel does with each of its arguments, as its launch tells those who observe the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "launch/arguments.h"
#include "openreg.h"

namespace openreg::ops {

// As the types of its parameters say: it writes what it takes as outputs, or by a reference that is not const. A tensor
// that may be absent is no output, so it is updated: running statistics, say.
template <class T>
constexpr orAccess access_by_type() {
  if (std::is_same_v<T, at::Tensor&> || std::is_same_v<T, OutputList>) {
    return orAccessWrite;
  }
  return std::is_same_v<T, std::optional<at::Tensor>&> ? orAccessReadWrite : orAccessRead;
}
template <class... Args>
constexpr std::array<orAccess, sizeof...(Args)> accesses_by_type() {
  return {access_by_type<Args>()...};
}

// Operators in place that do not look at what they replace; a schema does not tell.
constexpr bool overwrites(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"aten::fill_",          "aten::zero_",
                                                      "aten::_foreach_zero_", "aten::_foreach_copy_",
                                                      "aten::_cummax_helper", "aten::_cummin_helper"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The text of an argument of a schema, "name(Tensor(a!) self, *, int[2] size=[1, 1]) -> Tensor"; of keywords, too.
struct SchemaArgument {
  std::string_view text;
  bool is_keyword;
};

constexpr SchemaArgument schema_argument(std::string_view schema, size_t index) {
  const std::string_view all = schema.substr(schema.find('(') + 1);
  bool is_keyword = false;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const char letter = all[i];
    if (depth == 0 && (letter == ',' || letter == ')')) {
      const std::string_view text = all.substr(begin, i - begin);
      if (text == "*") {
        is_keyword = true;
      } else if (index == 0 || letter == ')') {
        return {index == 0 ? text : std::string_view(), is_keyword};
      } else {
        --index;
      }
      begin = i + 2;
    }
    depth += letter == '(' || letter == '[' ? 1 : 0;
    depth -= letter == ')' || letter == ']' ? 1 : 0;
  }
  return {{}, is_keyword};
}

// As the schema of the operator says, for kernels with its signature: "(a!)" is updated; as a keyword it is an output.
template <class Operator>
constexpr orAccess access_by_schema(size_t index) {
  const SchemaArgument argument = schema_argument(Operator::schema_str, index);
  if (argument.text.find("!)") == std::string_view::npos) {
    return orAccessRead;
  }
  return argument.is_keyword || overwrites(Operator::name) ? orAccessWrite : orAccessReadWrite;
}

// The same for all arguments, one after the other.
template <class Operator, class Schema>
constexpr std::nullptr_t kAccessesOf = nullptr;
template <class Operator, class Result, class... Args>
constexpr std::array<orAccess, sizeof...(Args)> kAccessesOf<Operator, Result(Args...)> = [] {
  std::array<orAccess, sizeof...(Args)> accesses{};
  for (size_t i = 0; i < accesses.size(); ++i) {
    accesses[i] = access_by_schema<Operator>(i);
  }
  return accesses;
}();

static_assert(schema_argument("f(Tensor(a!) self, int[2] size=[1, 1], *, Tensor(b!) out) -> ()", 0).text ==
              "Tensor(a!) self");
static_assert(schema_argument("f(Tensor(a!) self, int[2] size=[1, 1], *, Tensor(b!) out) -> ()", 1).text ==
              "int[2] size=[1, 1]");
static_assert(schema_argument("f(Tensor(a!) self, int[2] size=[1, 1], *, Tensor(b!) out) -> ()", 2).is_keyword);
static_assert(schema_argument("f(Tensor self) -> Tensor", 1).text.empty());

}  // namespace openreg::ops
