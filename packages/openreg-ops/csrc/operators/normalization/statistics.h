// SPDX-License-Identifier: BSD-3-Clause
// The dtypes that a normalisation computes in, and of what it keeps for backward.
#pragma once

#include <ATen/OpMathType.h>
#include <ATen/native/cpu/mixed_data_type.h>

#include "launch/launch.h"

namespace openreg::ops {

// Statistics are kept in float where the operand is of lower precision and what is known of them is float. Throws
// c10::Error, in PyTorch's words, for other mixtures.
template <class... Parameters>
c10::ScalarType statistics_type(const at::Tensor& input, const Parameters&... parameters) {
  const bool mixed = at::native::is_mixed_type(input, value_or_undefined(parameters)...);
  if (mixed) {
    at::native::check_mixed_data_type(input, value_or_undefined(parameters)...);
  }
  const c10::ScalarType dtype = at::native::param_scalar_type(input, mixed);
  // PyTorch's check looks no further than the first parameter where that has the dtype of the input.
  const auto check = [&](MaybeTensor parameter) {
    TORCH_CHECK(!is_given(parameter) || parameter->scalar_type() == dtype,
                "normalization: expected weight, bias and statistics of dtype ", dtype, " for an input of dtype ",
                input.scalar_type(), ", but got one of ", parameter->scalar_type(), "; convert it with .to()");
  };
  (check(parameters), ...);
  return dtype;
}

// On the engine: an operand in the dtype that it is computed in, float for half and bfloat16.
inline at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::toOpMathType(tensor.scalar_type()));
}

}  // namespace openreg::ops
