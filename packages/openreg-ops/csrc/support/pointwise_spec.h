// SPDX-License-Identifier: BSD-3-Clause
// Descriptions for operators that work element by element on several operands.
#pragma once

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>

#include <tuple>
#include <utility>

#include "support/output_spec.h"

namespace openreg::ops {

// The operands' common shape and dtype; laid out like the first operand where that one has the shape. Throws
// c10::Error, in PyTorch's words, where the shapes do not fit.
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

// Of a derivative by PyTorch's iterator for real floating point: the operands' common shape, and the dtype of the
// input, to which their common one is cast; laid out like the input where that has the shape.
template <class... Others>
OutputSpec broadcast_derivative(const at::Tensor& self, const Others&... others) {
  OutputSpec spec = output_of_operands(self, others...);
  require_dtype(c10::isFloatingType(spec.dtype), "a derivative", spec.dtype);
  TORCH_CHECK(c10::canCast(spec.dtype, self.scalar_type()), "result type ", spec.dtype,
              " can't be cast to the desired output type ", self.scalar_type());
  spec.dtype = self.scalar_type();
  return spec;
}

// A ready description for operators of two tensors.
constexpr auto like_operands = [](const at::Tensor& first, const at::Tensor& second, const auto&... /*rest*/) {
  return output_of_operands(first, second);
};

// A ready description of an out= form, whose last argument is the output: gives it the shape, and where it is new the
// strides, that PyTorch's iterator settles on; checks devices and overlapping memory. Any number of operands may be
// 0-dim tensors on the CPU, which have no say in it.
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
