// SPDX-License-Identifier: BSD-3-Clause
// The kernels of openreg::swiglu. They take aliases, which are CPU tensors over the bytes of device tensors. The
// compute engine of the device runs them, on all OpenMP threads. All tensors are contiguous, of one shape and of one
// dtype: float, double, half or bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::ops::kernels {

// Computes output = silu(gate) * up.
void swiglu(const at::Tensor& gate, const at::Tensor& up, at::Tensor& output);

// Computes the gradients of both operands from `grad`, that of the output.
void swiglu_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, at::Tensor& grad_gate,
                     at::Tensor& grad_up);

}  // namespace openreg::ops::kernels
