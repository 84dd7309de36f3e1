// SPDX-License-Identifier: BSD-3-Clause
// Meta functions for operators that work element by element on several operands.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>

#include <tuple>
#include <utility>

#include "support/output_spec.h"

namespace openreg::ops {

// Returns the specification of an output with the operands' common shape and dtype. It has the first operand's order of
// strides if that operand has that shape. Throws c10::Error, in PyTorch's words, if the shapes cannot be broadcast.
template <class... Others>
OutputSpec output_of_operands(const at::Tensor& first, const Others&... others) {
  std::vector<int64_t> sizes = first.sizes().vec();
  at::native::ResultTypeState state = at::native::update_result_type_state(first, {});
  const auto join = [&](const at::Tensor& other) {
    sizes = at::infer_size(sizes, other.sizes());
    state = at::native::update_result_type_state(other, state);
  };
  (join(others), ...);
  const c10::ScalarType dtype = at::native::result_type(state);
  return first.sizes() == at::IntArrayRef(sizes) ? output_like(first, dtype) : output_of(sizes, dtype);
}

// Returns the specification of a derivative that PyTorch computes by a TensorIterator, for real floating-point numbers.
// It has the operands' common shape, and the dtype of the input, `self`. It has the input's order of strides if the
// input has that shape. Throws NotImplementedError if the common dtype is not floating-point, and c10::Error if it
// cannot be cast to that of the input.
template <class... Others>
OutputSpec broadcast_derivative(const at::Tensor& self, const Others&... others) {
  OutputSpec spec = output_of_operands(self, others...);
  require_dtype(c10::isFloatingType(spec.dtype), "a derivative", spec.dtype);
  TORCH_CHECK(c10::canCast(spec.dtype, self.scalar_type()), "result type ", spec.dtype,
              " can't be cast to the desired output type ", self.scalar_type());
  spec.dtype = self.scalar_type();
  return spec;
}

// A meta function for operators of two tensors.
constexpr auto like_operands = [](const at::Tensor& first, const at::Tensor& second, const auto&... /*rest*/) {
  return output_of_operands(first, second);
};

// A meta function for an out= overload, whose last argument is the output. PyTorch's TensorIterator checks devices and
// overlapping memory and resizes the output to the common shape of the operands; a resized output also gets the
// iterator's strides. Any operand may be a 0-dim CPU tensor, which does not affect the shape.
constexpr auto by_iterator = []<class... Args>(const Args&... args) {
  const auto all = std::tie(args...);
  const at::Tensor& out = std::get<sizeof...(Args) - 1>(all);
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).add_output(out);
  const auto add = [&](const at::Tensor& operand) {
    if (!(operand.device().is_cpu() && operand.dim() == 0)) {
      config.add_const_input(operand);
    }
  };
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    (for_each_tensor(add, std::get<Index>(all)), ...);
  }(std::make_index_sequence<sizeof...(Args) - 1>());
  config.build();
  return output_of_shape(out);
};

}  // namespace openreg::ops
