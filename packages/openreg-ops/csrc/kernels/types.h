// SPDX-License-Identifier: BSD-3-Clause
// The number types of the kernels, and choosing a kernel's instance by the type of its operands.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace openreg::ops::raw {

// PyTorch's number types, and its names for them: header-only, no part of ATen.
using BFloat16 = c10::BFloat16;
using Half = c10::Half;
using Type = c10::ScalarType;

template <class Value>
constexpr Type kTypeOf = c10::CppTypeToScalarType<Value>::value;

// What sums of a real type are held in.
template <class Value>
using Accumulator = std::conditional_t<std::is_integral_v<Value>, int64_t,
                                       std::conditional_t<std::is_same_v<Value, double>, double, float>>;

template <class... Values>
struct Types {};
using Floats = Types<float, double, Half, BFloat16>;
using FloatsAndIntegers = Types<float, double, Half, BFloat16, uint8_t, int8_t, int16_t, int32_t, int64_t>;

template <class... Values>
constexpr bool contains(Types<Values...> /*list*/, Type type) {
  return ((kTypeOf<Values> == type) || ...);
}

// Calls `visitor(Value())` with the C++ type of `type`. The host calls contains() first; a type that is not in
// the list is an error of the host part.
template <class... Values, class Visitor>
void visit(Types<Values...> /*list*/, Type type, Visitor&& visitor) {
  const bool found = ((kTypeOf<Values> == type && (visitor(Values()), true)) || ...);
  if (!found) {
    throw std::invalid_argument("a kernel was launched for a type that it does not serve");
  }
}

}  // namespace openreg::ops::raw
