// SPDX-License-Identifier: BSD-3-Clause
// The kernels of openreg::add_rms_norm. They take aliases, which are CPU tensors over the bytes of device tensors. The
// compute engine of the device runs them, on all OpenMP threads, and a dry run (launch/dry_run.h) runs them on the
// calling thread alone. All tensors are contiguous, not empty, and of one dtype: float, double, half or bfloat16. The
// weight has one dimension, of the size of the last dimension of the others.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::ops::kernels {

// Computes sum = input + residual and output = sum / rms(sum) * weight. The root mean square (rms) is over the last
// dimension, and `eps` is added to the mean of the squares.
void add_rms_norm(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps,
                  at::Tensor& output, at::Tensor& sum);

// Computes the gradients. `grad_sum` is the gradient of the second result, `sum`. Input and residual have the same
// gradient, `grad_input`.
void add_rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                           const at::Tensor& weight, double eps, at::Tensor& grad_input, at::Tensor& grad_weight);

}  // namespace openreg::ops::kernels
