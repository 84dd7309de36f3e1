// SPDX-License-Identifier: BSD-3-Clause
// torch.ops.quantized: layers on quantized tensors, and on dense ones that the kernel quantizes itself ("dynamic").
// Weights are host objects (packed.cpp), from whatever device they came. The kernel on the engine reads them directly.
#include "registration/cached_meta.h"
#include "registration/declare.h"
#include "registration/non_strided.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(quantized, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard of_quantized(c10::DispatchKey::QuantizedPrivateUse1, "quantized");
  cached_meta(library, {"add", "add.Scalar", "add.Scalar2", "add.Scalar_out", "add.out", "add_out", "add_relu",
                        "add_relu.Scalar", "add_relu.Scalar2", "add_relu.Scalar_out", "add_relu.out", "add_relu_out",
                        "add_scalar", "add_scalar_out", "add_scalar_relu", "add_scalar_relu_out"});
  cached_meta(library, {"mul", "mul.Scalar", "mul.Scalar2", "mul.Scalar_out", "mul.out", "mul_out", "mul_relu",
                        "mul_relu.Scalar", "mul_relu.Scalar2", "mul_relu.Scalar_out", "mul_relu.out", "mul_relu_out",
                        "mul_scalar", "mul_scalar_out", "mul_scalar_relu", "mul_scalar_relu_out"});
  // The scale of the result depends on the value of a tensor, which is on the device or the host.
  synchronous<kQuantized>(
      library, {"add_scalar.Tensor", "add_scalar_out.Tensor", "add_scalar_relu.Tensor", "add_scalar_relu_out.Tensor",
                "mul_scalar.Tensor", "mul_scalar_out.Tensor", "mul_scalar_relu.Tensor", "mul_scalar_relu_out.Tensor"});
  cached_meta(library, {"cat", "cat_out", "cat_relu", "cat_relu_out", "matmul"});
  cached_meta(library, {"celu", "clamp", "dropout", "elu", "hardswish", "leaky_relu", "prelu", "relu6", "sigmoid",
                        "softmax", "threshold"});
  cached_meta(library,
              {"batch_norm", "batch_norm1d", "batch_norm1d_relu", "batch_norm2d", "batch_norm2d_relu", "batch_norm3d",
               "batch_norm3d_relu", "batch_norm_relu", "group_norm", "instance_norm", "layer_norm"});
  cached_meta(library, {"max_pool1d", "max_pool2d"});
  cached_meta(library, {"linear", "linear_leaky_relu", "linear_relu", "linear_tanh"});
  cached_meta(library, {"conv1d", "conv1d_relu", "conv2d", "conv2d.new", "conv2d_add", "conv2d_add_relu", "conv2d_relu",
                        "conv2d_relu.new", "conv3d", "conv3d.new", "conv3d_relu", "conv3d_relu.new", "conv_transpose1d",
                        "conv_transpose2d", "conv_transpose3d"});
}

// Operators on dense operands.
TORCH_LIBRARY_IMPL(quantized, PrivateUse1, library) {
  const RegistrationKeyGuard of_dense(c10::DispatchKey::PrivateUse1, "quantized");
  cached_meta(library,
              {"linear_dynamic", "linear_dynamic_fp16", "linear_dynamic_fp16_unpacked_weight", "linear_relu_dynamic",
               "linear_relu_dynamic_fp16", "linear_with_input_q_dq_qweight_dq_output_fp32",
               "linear_with_input_q_dq_qweight_dq_relu_output_fp32"});
  cached_meta(library, {"conv1d_dynamic", "conv2d_dynamic", "conv3d_dynamic", "conv_transpose1d_dynamic",
                        "conv_transpose2d_dynamic", "conv_transpose3d_dynamic"});
  cached_meta(library, {"quantized_gru_cell_dynamic", "quantized_lstm_cell_dynamic", "quantized_rnn_relu_cell_dynamic",
                        "quantized_rnn_tanh_cell_dynamic"});
  cached_meta(library, {"embedding_4bit", "embedding_bag_2bit_rowwise_offsets", "embedding_bag_4bit",
                        "embedding_bag_4bit_rowwise_offsets", "embedding_bag_byte",
                        "embedding_bag_byte_rowwise_offsets", "embedding_byte"});
  // These weights are tensors of bytes, which stay on the device.
  cached_meta(
      library,
      {"embedding_bag_2bit_prepack", "embedding_bag_2bit_prepack_with_rowwise_min_max", "embedding_bag_2bit_unpack",
       "embedding_bag_4bit_prepack", "embedding_bag_4bit_prepack_with_rowwise_min_max", "embedding_bag_4bit_unpack",
       "embedding_bag_byte_prepack", "embedding_bag_byte_prepack_with_rowwise_min_max", "embedding_bag_byte_unpack"});
  cached_meta(library, {"int4mm_packed_weight_cpu", "max_pool2d"});
}

// Operators with block-sparse weights.
TORCH_LIBRARY_IMPL(sparse, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard of_quantized(c10::DispatchKey::QuantizedPrivateUse1, "sparse");
  cached_meta(library, {"qlinear", "qlinear_relu"});
}

TORCH_LIBRARY_IMPL(sparse, PrivateUse1, library) {
  const RegistrationKeyGuard of_dense(c10::DispatchKey::PrivateUse1, "sparse");
  cached_meta(library, {"qlinear_dynamic"});  // none of PyTorch's engines has it with relu
}

}  // namespace

}  // namespace openreg::ops
