// SPDX-License-Identifier: BSD-3-Clause
// Making and checking the outputs of operators, on the host, before the launch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

namespace openreg::ops {

// A new tensor on the current device; its content is undefined. Without strides it is contiguous in the memory format
// of the options.
at::Tensor make_output(c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options);

// The same with sizes, strides, dtype and device of another tensor.
at::Tensor make_output_like(const at::Tensor& tensor);

// Gives an `out=` tensor the right size, warning as PyTorch does when it had another one and was not empty. Throws
// c10::Error unless its dtype and device are those of the options.
void resize_out(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                const c10::TensorOptions& options);

// Throws c10::Error unless an in-place operand can hold the result.
void check_inplace(const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options);

}  // namespace openreg::ops
