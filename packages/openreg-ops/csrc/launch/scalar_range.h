// SPDX-License-Identifier: BSD-3-Clause
// Checks that the scalar arguments of an operator fit into a dtype. Kernels convert these numbers when they run, and
// throw if a conversion overflows. So launches check first.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "launch/kernel_traits.h"

namespace openreg::ops {

// Throws c10::Error, in PyTorch's words, unless a tensor of the dtype can contain the number. Accepts every number if
// the dtype is not in kCommonDtypes (those that most kernels support), because the kernel may reject that dtype
// altogether (sync_policy.h).
void check_scalar_range(const at::Scalar& number, c10::ScalarType dtype);

// Returns true if a kernel's conversion of the number to the dtype would not overflow. Accepts every dtype.
bool converts_without_overflow(c10::ScalarType dtype, const at::Scalar& number);

// Returns true if an argument is a number that cannot be converted to the dtype. Accepts small real numbers at once,
// without a conversion, because every launch with a number calls it.
C10_ALWAYS_INLINE bool overflows(c10::ScalarType dtype, const at::Scalar& number) {
  constexpr double kSmall = 127;  // fits into all dtypes of kCommonDtypes
  if (C10_LIKELY((dtype_bit(dtype) & kCommonDtypes) != 0 && !number.isComplex())) {
    const double value = number.toDouble();
    const double least = dtype == c10::ScalarType::Byte ? 0 : -kSmall;
    return !(value <= kSmall && value >= least) && !converts_without_overflow(dtype, number);
  }
  return !converts_without_overflow(dtype, number);
}
template <class T>
bool overflows(c10::ScalarType /*dtype*/, const T& /*no_number*/) {
  return false;
}
inline bool overflows(c10::ScalarType dtype, const std::optional<at::Scalar>& number) {
  return number.has_value() && overflows(dtype, *number);
}

inline bool overflows(c10::ScalarType dtype, const at::ArrayRef<at::Scalar>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](const at::Scalar& number) { return overflows(dtype, number); });
}

// True for the types of scalar arguments, and of lists of them.
template <class T>
constexpr bool is_number =
    std::is_same_v<std::decay_t<T>, at::Scalar> || std::is_same_v<std::decay_t<T>, std::optional<at::Scalar>> ||
    std::is_same_v<std::decay_t<T>, at::ArrayRef<at::Scalar>>;

// Returns true if one of the numbers among the arguments overflows.
template <class... Args>
bool any_overflows(c10::ScalarType dtype, const Args&... args) {
  return (overflows(dtype, args) || ...);
}

}  // namespace openreg::ops
