// SPDX-License-Identifier: BSD-3-Clause
// Nested tensors. Those of layout torch.jagged are written in Python over ordinary tensors and need two operators of
// this file. Those of strided layout are a buffer on the device with sizes on the CPU; attention on jagged ones goes
// through them. PyTorch's functions for the latter are loops over ordinary operators where they do not read the
// buffer themselves, and run on this device as they are.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>

#include "declare/declare.h"

namespace openreg::ops {

namespace {

void check_offsets(const char* name, at::TensorList offsets) {
  TORCH_CHECK(offsets.size() == 1 && offsets[0].dim() == 1 && offsets[0].numel() > 0, name,
              ": expected one tensor of offsets with one dimension, because a jagged tensor has one ragged dimension");
}

OutputSpec describe_to_padded(const at::Tensor& values, at::TensorList offsets, c10::IntArrayRef max_lengths,
                              double /*padding*/) {
  check_offsets("_jagged_to_padded_dense_forward", offsets);
  TORCH_CHECK(max_lengths.size() == 1, "_jagged_to_padded_dense_forward: expected one maximal length");
  require_dtype(!values.is_complex(), "_jagged_to_padded_dense_forward", values.scalar_type());
  c10::DimVector sizes(values.sizes());
  sizes[0] = max_lengths[0];
  sizes.insert(sizes.begin(), offsets[0].numel() - 1);
  return output_of(sizes, values.scalar_type());
}

OutputSpec describe_to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total) {
  check_offsets("_padded_dense_to_jagged_forward", offsets);
  TORCH_CHECK(dense.dim() >= 2, "_padded_dense_to_jagged_forward: expected at least two dimensions");
  require_dtype(!dense.is_complex(), "_padded_dense_to_jagged_forward", dense.scalar_type());
  c10::DimVector sizes(dense.sizes().slice(1));
  sizes[0] = *total;
  return output_of(sizes, dense.scalar_type());
}

const auto kToJagged =
    described_operator<describe_to_jagged, op::_padded_dense_to_jagged_forward>(cpu::_padded_dense_to_jagged_forward);

// Without the number of rows the last offset is read, which waits.
at::Tensor to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total) {
  check_offsets("_padded_dense_to_jagged_forward", offsets);
  const int64_t rows = total.has_value() ? *total : offsets[0].select(0, -1).item<int64_t>();
  return kToJagged.functional(dense, offsets, rows);
}

void run_function_of_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::NestedTensorCPU), stack);
}

void refuse_nested(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(),
                              ": the openreg device has no such operator for nested tensors of strided layout; make "
                              "the tensor with layout=torch.jagged, or keep it on the CPU");
}

// Functions that never touch the buffer but through ordinary operators; test_nested.py runs each.
constexpr const char* kDeviceFree[] = {
    "_nested_tensor_size",
    "_nested_tensor_storage_offsets",
    "_nested_tensor_strides",
    "_safe_softmax",
    "_softmax",
    "_softmax_backward_data",
    "_to_copy",
    "add.Tensor",
    "all.dim",
    "clone",
    "empty_like",
    "gelu",
    "isneginf",
    "linear",
    "matmul",
    "matmul_backward",
    "mul.Scalar",
    "relu",
    "to_padded_tensor",
    "transpose.int",
    "unbind.int",
    "values",
    "where.self_out",
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  described<describe_to_padded, op::_jagged_to_padded_dense_forward>(library, cpu::_jagged_to_padded_dense_forward);
  function<op::_nested_view_from_buffer>(library, at::native::_nested_view_from_buffer);
  function<op::_padded_dense_to_jagged_forward>(library, to_jagged);
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, library) {
  for (const char* name : kDeviceFree) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_function_of_cpu>());
  }
}

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_nested>());
}

}  // namespace

}  // namespace openreg::ops
