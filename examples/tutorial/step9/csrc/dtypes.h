// SPDX-License-Identifier: BSD-3-Clause
// Which dtypes kernels take. A kernel runs when its call has returned, too late to refuse one: the host has to do so.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace pocket {

constexpr bool is_float(c10::ScalarType dtype) {
  return dtype == c10::kHalf || dtype == c10::kBFloat16 || dtype == c10::kFloat || dtype == c10::kDouble;
}

constexpr bool is_real(c10::ScalarType dtype) {
  return is_float(dtype) || dtype == c10::kByte || dtype == c10::kChar || dtype == c10::kShort || dtype == c10::kInt ||
         dtype == c10::kLong;
}

constexpr bool is_number(c10::ScalarType dtype) {
  return is_real(dtype) || dtype == c10::kComplexFloat || dtype == c10::kComplexDouble;
}

constexpr bool is_common(c10::ScalarType dtype) {
  return is_number(dtype) || dtype == c10::kBool || dtype == c10::kComplexHalf;
}

// Throws NotImplementedError, as PyTorch's own devices do, for a dtype that a kernel does not take.
inline void check_dtype(const char* name, c10::ScalarType dtype, bool (*takes)(c10::ScalarType)) {
  TORCH_CHECK_NOT_IMPLEMENTED(takes(dtype), name, ": not implemented for '", dtype, "'");
}

}  // namespace pocket
