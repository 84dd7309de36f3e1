// SPDX-License-Identifier: BSD-3-Clause
// The kernels of openreg::swiglu: what runs on the engine, on CPU tensors, on all threads. All tensors are contiguous,
// of one shape and of one dtype: float, double, half or bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::ops::kernels {

// output = silu(gate) * up.
void swiglu(const at::Tensor& gate, const at::Tensor& up, at::Tensor& output);

void swiglu_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, at::Tensor& grad_gate,
                     at::Tensor& grad_up);

}  // namespace openreg::ops::kernels
