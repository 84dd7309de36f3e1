// SPDX-License-Identifier: BSD-3-Clause
// The dtype in which a normalization saves statistics for backward.
#pragma once

#include <ATen/native/cpu/mixed_data_type.h>

#include "launch/launch.h"
#include "support/compute_dtype.h"

namespace openreg::ops {

// Returns the dtype of the statistics: float if the input has lower precision and the parameters are float, else the
// input's dtype. Throws c10::Error, in PyTorch's words, for other combinations of dtypes.
template <class... Parameters>
c10::ScalarType statistics_type(const at::Tensor& input, const Parameters&... parameters) {
  const bool mixed = at::native::is_mixed_type(input, value_or_undefined(parameters)...);
  if (mixed) {
    at::native::check_mixed_data_type(input, value_or_undefined(parameters)...);
  }
  const c10::ScalarType dtype = at::native::param_scalar_type(input, mixed);
  // PyTorch checks only the first parameter if that has the dtype of the input.
  const auto check = [&](MaybeTensor parameter) {
    TORCH_CHECK(!is_given(parameter) || parameter->scalar_type() == dtype,
                "normalization: expected weight, bias and statistics of dtype ", dtype, " for an input of dtype ",
                input.scalar_type(), ", but got one of ", parameter->scalar_type(), "; convert it with .to()");
  };
  (check(parameters), ...);
  return dtype;
}

}  // namespace openreg::ops
