// SPDX-License-Identifier: BSD-3-Clause
// The access of a kernel to each of its arguments: read, write or both. The launch of the kernel reports these accesses
// to observers, which are tools that subscribe to the driver, such as the sanitizer.
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

// Returns the access that a parameter's type implies. The kernel writes an at::Tensor& and an OutputList (a list of
// outputs, launch/arguments.h), reads and writes an optional tensor by reference, such as running statistics, and reads
// all others.
template <class T>
constexpr orAccess access_by_type() {
  if (std::is_same_v<T, at::Tensor&> || std::is_same_v<T, OutputList>) {
    return orAccessWrite;
  }
  return std::is_same_v<T, std::optional<at::Tensor>&> ? orAccessReadWrite : orAccessRead;
}
// The accesses by type of all parameters, in order.
template <class... Args>
constexpr std::array<orAccess, sizeof...(Args)> kAccessesByType = {access_by_type<Args>()...};

// Returns true for operators that do not read the old content of the operands that they modify. A schema does not
// contain this fact. `name` is the dispatcher's name, such as "aten::fill_".
constexpr bool overwrites(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"aten::fill_",          "aten::zero_",
                                                      "aten::_foreach_zero_", "aten::_foreach_copy_",
                                                      "aten::_cummax_helper", "aten::_cummin_helper"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The text of one argument of a schema such as "name(Tensor(a!) self, *, int[2] size=[1, 1]) -> Tensor". Arguments
// after the * are keywords.
struct SchemaArgument {
  std::string_view text;
  bool is_keyword;
};

// Returns the argument of a schema at `index`, counted from 0 and without the *, or an empty text if there is none.
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

// Returns the access that the schema of Op (at::_ops) implies, for kernels with the signature of that schema. An
// argument with "(a!)" is read and written, or only written if it is a keyword, because it is then an output.
template <class Op>
constexpr orAccess access_by_schema(size_t index) {
  const SchemaArgument argument = schema_argument(Op::schema_str, index);
  if (argument.text.find("!)") == std::string_view::npos) {
    return orAccessRead;
  }
  return argument.is_keyword || overwrites(Op::name) ? orAccessWrite : orAccessReadWrite;
}

// The accesses by schema of all arguments of Op (at::_ops), in order. Schema is its C++ signature.
template <class Op, class Schema>
constexpr std::nullptr_t kAccessesOf = nullptr;
template <class Op, class Result, class... Args>
constexpr std::array<orAccess, sizeof...(Args)> kAccessesOf<Op, Result(Args...)> = [] {
  std::array<orAccess, sizeof...(Args)> accesses{};
  for (size_t i = 0; i < accesses.size(); ++i) {
    accesses[i] = access_by_schema<Op>(i);
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
