// SPDX-License-Identifier: BSD-3-Clause
// Descriptions for operators that work element by element on several operands.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/ops/result_type.h>

#include "common/output_spec.h"

namespace openreg::ops {

// The operands' common shape and dtype; laid out like the first operand where that one has the shape. Throws
// c10::Error, in PyTorch's words, where the shapes do not fit.
template <class... Others>
OutputSpec output_of_operands(const at::Tensor& first, const Others&... others) {
  std::vector<int64_t> sizes = first.sizes().vec();
  c10::ScalarType dtype = first.scalar_type();
  const auto join = [&](const at::Tensor& other) {
    sizes = at::infer_size(sizes, other.sizes());
    dtype = at::result_type(first, other);
  };
  (join(others), ...);
  return first.sizes() == at::IntArrayRef(sizes) ? output_like(first, dtype) : output_of(sizes, dtype);
}

// A ready description for operators of two tensors.
constexpr auto like_operands = [](const at::Tensor& first, const at::Tensor& second, const auto&... /*rest*/) {
  return output_of_operands(first, second);
};

// Ready descriptions of derivatives: like the second operand, the input, in its order of strides or contiguous.
constexpr auto like_second = [](const at::Tensor& /*grad*/, const at::Tensor& self, const auto&... /*rest*/) {
  return output_like(self);
};
constexpr auto shape_of_second = [](const at::Tensor& /*grad*/, const at::Tensor& self, const auto&... /*rest*/) {
  return output_of_shape(self);
};

}  // namespace openreg::ops
