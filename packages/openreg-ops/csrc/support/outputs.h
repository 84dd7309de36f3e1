// SPDX-License-Identifier: BSD-3-Clause
// Making and checking the outputs of operators, on the host, before the launch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/DimVector.h>

#include <optional>

namespace openreg::ops {

// A new tensor on the current device; its content is undefined. Without strides it is contiguous in the memory format
// of the options.
at::Tensor make_output(c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options);

// The strides of a tensor, or where it has gaps or overlaps those of a dense one in the same order.
c10::DimVector dense_strides_like(const at::Tensor& tensor);

// A new tensor with sizes and dtype of another tensor, dense in its order of strides, as at::empty_like() makes it. Or
// of another dtype.
at::Tensor make_output_like(const at::Tensor& tensor, std::optional<c10::ScalarType> dtype = {});

// Gives an `out=` tensor the right size, warning as PyTorch does when it had another one and was not empty. Throws
// c10::Error unless its dtype and device are those of the options.
void resize_out(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                const c10::TensorOptions& options);

// Whether a tensor lies in memory as a new output would, or is expanded. Arguments are those of resize_out().
bool is_laid_out(const at::Tensor& out, c10::IntArrayRef strides, const c10::TensorOptions& options);

// Throws c10::Error unless an in-place operand can hold the result.
void check_inplace(const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options);

}  // namespace openreg::ops
