// SPDX-License-Identifier: BSD-3-Clause
// Numbers among the arguments of operators, and whether a dtype can hold them. Kernels convert them when they run, and
// throw where that overflows; so launches look first.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Macros.h>

#include <optional>
#include <type_traits>

#include "launch/kernel_rule.h"

namespace openreg::ops {

// Throws c10::Error, in PyTorch's words, unless a tensor of the dtype can hold the number. Of dtypes that are not in
// common use nothing is asked: the kernel may refuse them altogether, and has the word (failure.h).
void require_number(const at::Scalar& number, c10::ScalarType dtype);

// Whether a number can be converted to the dtype, which may be any, as kernels do it.
bool converts(c10::ScalarType dtype, const at::Scalar& number);

C10_ALWAYS_INLINE bool overflows(c10::ScalarType dtype, const at::Scalar& number) {
  constexpr double kSmall = 127;  // fits into all dtypes in common use
  if (C10_LIKELY((dtype_bit(dtype) & kCommonDtypes) != 0 && !number.isComplex())) {
    const double value = number.toDouble();
    const double least = dtype == c10::ScalarType::Byte ? 0 : -kSmall;
    return !(value <= kSmall && value >= least) && !converts(dtype, number);
  }
  return !converts(dtype, number);
}
template <class T>
bool overflows(c10::ScalarType /*dtype*/, const T& /*no_number*/) {
  return false;
}
inline bool overflows(c10::ScalarType dtype, const std::optional<at::Scalar>& number) {
  return number.has_value() && overflows(dtype, *number);
}

template <class T>
constexpr bool is_number =
    std::is_same_v<std::decay_t<T>, at::Scalar> || std::is_same_v<std::decay_t<T>, std::optional<at::Scalar>>;

// Whether one of the numbers among the arguments overflows.
template <class... Args>
bool any_overflows(c10::ScalarType dtype, const Args&... args) {
  return (overflows(dtype, args) || ...);
}

}  // namespace openreg::ops
