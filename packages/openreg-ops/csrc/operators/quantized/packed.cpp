// SPDX-License-Identifier: BSD-3-Clause
// Packed weights. A layer of torch.ao.nn.quantized has its weights in an object of torch.classes.quantized, which
// PyTorch's quantization engine lays out for its products. Such objects stay on the host, and this device's kernels
// read them there. PyTorch unpickles and copies an object by the CPU's engine, from whatever device it came. So an
// object on a device would not survive copy.deepcopy(). A model that was converted on the CPU runs here unchanged.
//
// REAL HW: the backend has its own class, derived from LinearPackedParamsBase, that holds weights on the device, as
// cuDNN's does.
#include <ATen/core/dispatch/Dispatcher.h>

#include "fallback/boxed_cpu_call.h"
#include "launch/run_and_wait.h"
#include "openreg/runtime/stream.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using torch::jit::Stack;

// Copies the weights to the host, which blocks, and leaves the packed object there. The engine thread packs, because
// PyTorch may use many threads for it.
void pack(const c10::OperatorHandle& op, Stack* stack) {
  const c10::Device device = device_of_call(*stack, op.schema().arguments().size());
  check_devices_of_call(op, *stack, device);
  const size_t count = op.schema().arguments().size();
  const auto on_host = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.cpu() : tensor; };
  Stack arguments;
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    arguments.push_back(with_tensors((*stack)[i], on_host));
  }
  Stack results = arguments;  // the kernel pops these; the host keeps `arguments`
  const c10::DispatchKeySet keys(cpu_key_of(op, arguments));
  const auto run = [&] { op.redispatchBoxed(keys, &results); };
  wait_for(op.schema().name().c_str(), device, run, nullptr);
  torch::jit::drop(*stack, count);
  stack->insert(stack->end(), results.begin(), results.end());
}

// Rejects the predecessors of torch.ops.quantized, because their weights are host addresses in a tensor of bytes.
void throw_unsupported_legacy(const c10::OperatorHandle& op, Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, op.operator_name(),
      ": the openreg device does not support the weights that this operator packs or takes; use "
      "torch.ao.nn.quantized.dynamic, or torch.ops.quantized.linear_prepack and linear_dynamic");
}

TORCH_LIBRARY_IMPL(quantized, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard of_quantized(c10::DispatchKey::QuantizedPrivateUse1, "quantized");
  boxed<&pack>(library,
               {"conv1d_prepack", "conv2d_prepack", "conv3d_prepack", "conv_prepack", "conv_transpose1d_prepack",
                "conv_transpose2d_prepack", "conv_transpose3d_prepack", "embedding_bag_prepack", "linear_prepack"});
  boxed<&throw_unsupported_legacy>(library, {"linear_prepack_legacy"});
}

TORCH_LIBRARY_IMPL(quantized, PrivateUse1, library) {
  const RegistrationKeyGuard of_dense(c10::DispatchKey::PrivateUse1, "quantized");
  boxed<&pack>(library, {"linear_prepack_fp16", "make_quantized_cell_params", "make_quantized_cell_params_dynamic"});
  boxed<&throw_unsupported_legacy>(library,
                                   {"linear_prepack_fp16_legacy", "linear_unpack.legacy", "linear_unpack_fp16.legacy"});
}

TORCH_LIBRARY_IMPL(sparse, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard of_quantized(c10::DispatchKey::QuantizedPrivateUse1, "sparse");
  boxed<&pack>(library, {"qlinear_prepack"});
}

// PyTorch registers these for every device, but they read host memory.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  boxed<&throw_unsupported_legacy>(
      library, {"fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation", "fbgemm_linear_int8_weight",
                "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight",
                "fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix", "fbgemm_pack_quantized_matrix.KN",
                "quantized_gru_cell", "quantized_lstm_cell", "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell"});
}

// The counterparts of these operators in code that torch.compile generates.
TORCH_LIBRARY_IMPL(_quantized, PrivateUse1, library) {
  const RegistrationKeyGuard of_dense(c10::DispatchKey::PrivateUse1, "_quantized");
  boxed<&throw_unsupported_legacy>(
      library, {"_wrapped_linear_prepack", "_wrapped_quantized_linear_prepacked", "linear_prepack_fp16_legacy",
                "wrapped_fbgemm_linear_fp16_weight", "wrapped_fbgemm_pack_gemm_matrix_fp16"});
}

}  // namespace

}  // namespace openreg::ops
