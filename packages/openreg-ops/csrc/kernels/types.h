// SPDX-License-Identifier: BSD-3-Clause
// The number types of the kernels in namespace raw, and the selection of a kernel's template instance by the dtype of
// its operands. Kernels in namespace raw take addresses, sizes and strides instead of tensors; those in namespace
// kernels take CPU tensors.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace openreg::ops::raw {

// Short names of PyTorch's 16-bit floating-point types and of its enumeration of dtypes. Their header needs no ATen.
using BFloat16 = c10::BFloat16;
using Half = c10::Half;
using Type = c10::ScalarType;

// The dtype of a C++ type.
template <class Value>
constexpr Type kTypeOf = c10::CppTypeToScalarType<Value>::value;

// The type in which sums of a real type are accumulated: int64 for integers and bool, double for double, else float.
template <class Value>
using Accumulator = std::conditional_t<std::is_integral_v<Value>, int64_t,
                                       std::conditional_t<std::is_same_v<Value, double>, double, float>>;

// A list of C++ types, which a kernel supports.
template <class... Values>
struct Types {};
using Floats = Types<float, double, Half, BFloat16>;
using FloatsAndIntegers = Types<float, double, Half, BFloat16, uint8_t, int8_t, int16_t, int32_t, int64_t>;

// Returns true if the list contains the C++ type that belongs to the dtype `type`.
template <class... Values>
constexpr bool contains(Types<Values...> /*list*/, Type type) {
  return ((kTypeOf<Values> == type) || ...);
}

// Calls `visitor` with a value of the C++ type that belongs to the dtype `type`; only the type of that value matters.
// Throws std::invalid_argument for a dtype that is not in the list; the host excludes this by contains() before the
// launch.
template <class... Values, class Visitor>
void visit(Types<Values...> /*list*/, Type type, Visitor&& visitor) {
  const bool found = ((kTypeOf<Values> == type && (visitor(Values()), true)) || ...);
  if (!found) {
    throw std::invalid_argument(
        "a kernel of openreg_ops was launched for a dtype that it does not support; please report this");
  }
}

}  // namespace openreg::ops::raw
