// SPDX-License-Identifier: BSD-3-Clause
// Functions that allocate and check the outputs of operators, on the host, before the launch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/DimVector.h>

#include <optional>

namespace openreg::ops {

// Returns a new tensor on the current device with undefined content. Without `strides` it is contiguous in the memory
// format of the options.
at::Tensor make_output(c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options);

// Returns the strides of a tensor. If the tensor has gaps or overlaps itself, returns those of a dense one in its
// order.
c10::DimVector dense_strides_like(const at::Tensor& tensor);

// Returns a new tensor like that of at::empty_like(), on the current device: dense, with the tensor's sizes and order
// of strides, and with its dtype unless another one is passed.
at::Tensor make_output_like(const at::Tensor& tensor, std::optional<c10::ScalarType> dtype = {});

// Resizes an `out=` tensor. Warns as PyTorch does if the tensor had another size and was not empty. Throws c10::Error
// unless its dtype and device are those of the options.
void resize_out(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                const c10::TensorOptions& options);

// Returns true if a tensor lies in memory as a new output would, is expanded, or has no elements. Arguments are those
// of `resize_out()`.
bool is_laid_out(const at::Tensor& out, c10::IntArrayRef strides, const c10::TensorOptions& options);

// Throws c10::Error, in PyTorch's words, unless an in-place operand has the sizes, dtype and device of the result.
void check_inplace(const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options);

}  // namespace openreg::ops
