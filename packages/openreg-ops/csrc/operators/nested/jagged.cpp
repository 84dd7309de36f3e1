// SPDX-License-Identifier: BSD-3-Clause
// Operators on nested tensors of layout torch.jagged, a subclass of Tensor that PyTorch implements in Python. It wraps
// ordinary tensors: one with the values of all components, and one with their offsets. Only padding and its inverse
// need operators of their own. Attention is in csrc/operators/attention/efficient.cpp.
#include "registration/declare.h"

namespace openreg::ops {

namespace {

void check_offsets(const char* name, at::TensorList offsets) {
  TORCH_CHECK(offsets.size() == 1 && offsets[0].dim() == 1 && offsets[0].numel() > 0, name,
              ": expected one tensor of offsets with one dimension, because a jagged tensor has one ragged dimension");
}

OutputSpec meta_to_padded(const at::Tensor& values, at::TensorList offsets, c10::IntArrayRef max_lengths,
                          double /*padding*/) {
  check_offsets("_jagged_to_padded_dense_forward", offsets);
  TORCH_CHECK(values.dim() >= 1, "_jagged_to_padded_dense_forward: expected values with at least one dimension");
  TORCH_CHECK(max_lengths.size() == 1, "_jagged_to_padded_dense_forward: expected one maximal length");
  require_dtype(!values.is_complex(), "_jagged_to_padded_dense_forward", values.scalar_type());
  c10::DimVector sizes(values.sizes());
  sizes[0] = max_lengths[0];
  sizes.insert(sizes.begin(), offsets[0].numel() - 1);
  return output_of(sizes, values.scalar_type());
}

OutputSpec meta_to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total) {
  check_offsets("_padded_dense_to_jagged_forward", offsets);
  TORCH_CHECK(dense.dim() >= 2, "_padded_dense_to_jagged_forward: expected at least two dimensions");
  require_dtype(!dense.is_complex(), "_padded_dense_to_jagged_forward", dense.scalar_type());
  c10::DimVector sizes(dense.sizes().slice(1));
  sizes[0] = *total;
  return output_of(sizes, dense.scalar_type());
}

const auto kToJagged =
    unstructured_operator<meta_to_jagged, op::_padded_dense_to_jagged_forward>(cpu::_padded_dense_to_jagged_forward);

// Reads the last offset if the number of rows is not passed, which blocks.
at::Tensor to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total) {
  check_offsets("_padded_dense_to_jagged_forward", offsets);
  const int64_t rows = total.has_value() ? *total : offsets[0].select(0, -1).item<int64_t>();
  return kToJagged.functional(dense, offsets, rows);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_to_padded, op::_jagged_to_padded_dense_forward>(library, cpu::_jagged_to_padded_dense_forward);
  function<op::_padded_dense_to_jagged_forward>(library, to_jagged);
}

}  // namespace

}  // namespace openreg::ops
