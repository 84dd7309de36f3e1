// SPDX-License-Identifier: BSD-3-Clause
#include "launch/scalar_range.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>

#include <exception>

#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// Throws c10::Error if the number overflows, or if the dtype does not support arithmetic.
void convert(c10::ScalarType dtype, const at::Scalar& number) {
  AT_DISPATCH_V2(dtype, "a number", AT_WRAP([&] { (void)number.to<scalar_t>(); }), AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), AT_EXPAND(AT_FLOAT8_TYPES),
                 AT_EXPAND(OPENREG_REDUCED_COMPLEX_TYPES), at::kHalf, at::kBool, at::kBFloat16);
}

}  // namespace

void check_scalar_range(const at::Scalar& number, c10::ScalarType dtype) {
  if ((dtype_bit(dtype) & kCommonDtypes) != 0) {
    convert(dtype, number);
  }
}

bool converts_without_overflow(c10::ScalarType dtype, const at::Scalar& number) {
  try {
    convert(dtype, number);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace openreg::ops
