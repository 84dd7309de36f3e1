// SPDX-License-Identifier: BSD-3-Clause
// Operators on nested tensors of strided layout: PyTorch's CPU functions that work on this device unchanged, and a
// fallback that rejects the others.
#include <ATen/ops/_nested_tensor_from_mask_left_aligned_native.h>
#include <ATen/ops/_nested_tensor_from_mask_native.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>
#include <ATen/ops/_transform_bias_rescale_qkv.h>

#include "operators/nested/components.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

void throw_unsupported_nested(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(),
                              ": the openreg device has no such operator for nested tensors of strided layout; make "
                              "the tensor with layout=torch.jagged, or keep it on the CPU");
}

// Functions that access the buffer only through ordinary operators, or not at all (registration/non_strided.h). The
// test tests/layouts/test_nested_strided.py calls each, and lists PyTorch's functions that are neither here nor in
// components.cpp.
constexpr const char* kHostComposites[] = {
    "_fused_sdp_choice",
    "_native_multi_head_attention",
    "_nested_from_padded_and_nested_example",
    "_nested_select_backward",
    "_nested_tensor_size",
    "_nested_tensor_storage_offsets",
    "_nested_tensor_strides",
    "_pin_memory",
    "_safe_softmax",
    "_softmax",
    "_softmax_backward_data",
    "_test_autograd_multiple_dispatch.fullcoverage",
    "_test_autograd_multiple_dispatch.ntonly",
    "_to_copy",
    "_transformer_encoder_layer_fwd",
    "abs",
    "abs_",
    "add.Tensor",
    "add_.Tensor",
    "alias",
    "all.dim",
    "bmm",
    "cat",
    "chunk",
    "clone",
    "copy_",
    "cos",
    "detach",
    "div.Scalar",
    "div.Tensor",
    "embedding",
    "empty_like",
    "eq.Scalar",
    "eq.Tensor",
    "fill_.Scalar",
    "fill_.Tensor",
    "ge.Scalar",
    "gelu",
    "gelu_",
    "gelu_backward",
    "gt.Scalar",
    "is_pinned",
    "is_same_size",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "linear",
    "linear_backward",
    "logical_not",
    "logical_not_",
    "masked_fill.Scalar",
    "matmul.out",
    "matmul_backward",
    "mul.Scalar",
    "mul.Tensor",
    "mul_.Scalar",
    "mul_.Tensor",
    "narrow",
    "native_dropout",
    "native_dropout_backward",
    "native_layer_norm",
    "native_layer_norm_backward",
    "neg",
    "neg_",
    "normal_",
    "ones_like",
    "relu",
    "relu_",
    "select.int",
    "sgn",
    "sgn_",
    "silu",
    "silu_",
    "silu_backward",
    "sin",
    "split_with_sizes",
    "sqrt",
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
    "sub.Tensor",
    "tanh",
    "tanh_",
    "threshold_backward",
    "transpose.int",
    "unbind.int",
    "unsqueeze",
    "value_selecting_reduction_backward",
    "values",
    "view",
    "where.self",
    "where.self_out",
    "zero_",
};

// Pads and calls the operator for dense tensors, because PyTorch's CPU function pads, too, but then reads the padded
// tensor itself.
std::tuple<at::Tensor, at::Tensor, at::Tensor> rescale_qkv(const at::Tensor& qkv, const at::Tensor& bias,
                                                           int64_t heads) {
  return at::_transform_bias_rescale_qkv(qkv.to_padded_tensor(0.0), bias, heads);
}

void record_nested_stream(at::Tensor& self, c10::Stream stream) {
  nested(self).get_unsafe_storage_as_tensor().record_stream(stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // The functions that take a mask block, because sizes depend on its data.
  function<op::_nested_tensor_from_mask>(library, at::native::NestedTensor_nested_tensor_from_mask);
  function<op::_nested_tensor_from_mask_left_aligned>(library,
                                                      at::native::NestedTensor_nested_tensor_from_mask_left_aligned);
  function<op::_nested_view_from_buffer>(library, at::native::_nested_view_from_buffer);
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, library) {
  const RegistrationKeyGuard strided(c10::DispatchKey::NestedTensorPrivateUse1);
  host_composite<kNested>(library, kHostComposites);
  function<op::_transform_bias_rescale_qkv>(library, rescale_qkv);
  function<op::record_stream>(library, record_nested_stream);
}

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&throw_unsupported_nested>());
}

}  // namespace

}  // namespace openreg::ops
