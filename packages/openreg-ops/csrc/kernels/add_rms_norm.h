// SPDX-License-Identifier: BSD-3-Clause
// The kernels of openreg::add_rms_norm: what runs on the engine, on CPU tensors, on all threads. All tensors are
// contiguous and of one dtype: float, double, half or bfloat16. The weight has the last dimension of the others; none
// is empty.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::ops::kernels {

// sum = input + residual, output = sum / rms(sum) * weight, with the root mean square over the last dimension.
void add_rms_norm(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps,
                  at::Tensor& output, at::Tensor& sum);

// `grad_sum` is what reaches the sum by itself; input and residual have one gradient.
void add_rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                           const at::Tensor& weight, double eps, at::Tensor& grad_input, at::Tensor& grad_weight);

}  // namespace openreg::ops::kernels
