// SPDX-License-Identifier: BSD-3-Clause
// Packed weights. A layer of torch.ao.nn.quantized has its weights in an object, torch.classes.quantized, that
// PyTorch's quantisation engine lays out for its products. This device leaves such objects on the host and lets its
// kernels read them there: PyTorch unpickles and copies an object by the engine of the CPU, whichever device it came
// from, so an object of a device would not survive copy.deepcopy(). A model that was converted on the CPU runs here as
// it is.
//
// REAL HW: a class of the backend's own, derived from LinearPackedParamsBase, that holds weights on the device, as
// cuDNN's does.
#include <ATen/core/dispatch/Dispatcher.h>

#include "fallback/boxed_cpu_call.h"
#include "launch/run_and_wait.h"
#include "openreg/runtime/stream.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using torch::jit::Stack;

// The weights come to the host, for which the call waits; what comes out stays there. The engine packs, since PyTorch
// may do so on many threads.
void pack(const c10::OperatorHandle& op, Stack* stack) {
  const c10::Device device = device_of_call(*stack, op.schema().arguments().size());
  check_devices_of_call(op, *stack, device);
  const size_t count = op.schema().arguments().size();
  const auto on_host = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.cpu() : tensor; };
  Stack arguments;
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    arguments.push_back(with_tensors((*stack)[i], on_host));
  }
  Stack results = arguments;  // the host keeps what the kernel takes off this one
  const c10::DispatchKeySet keys(cpu_key_of(op, arguments));
  const auto run = [&] { op.redispatchBoxed(keys, &results); };
  wait_for(op.schema().name().c_str(), device, run, nullptr);
  torch::jit::drop(*stack, count);
  stack->insert(stack->end(), results.begin(), results.end());
}

// What was there before torch.ops.quantized. Its weights are addresses of the host within a tensor of bytes.
void refuse_legacy(const c10::OperatorHandle& op, Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, op.operator_name(),
      ": the openreg device does not take weights that this operator packs or takes; use "
      "torch.ao.nn.quantized.dynamic, or torch.ops.quantized.linear_prepack and linear_dynamic");
}

TORCH_LIBRARY_IMPL(quantized, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard of_quantized(c10::DispatchKey::QuantizedPrivateUse1, "quantized");
  boxed<&pack>(library,
               {"conv1d_prepack", "conv2d_prepack", "conv3d_prepack", "conv_prepack", "conv_transpose1d_prepack",
                "conv_transpose2d_prepack", "conv_transpose3d_prepack", "embedding_bag_prepack", "linear_prepack"});
  boxed<&refuse_legacy>(library, {"linear_prepack_legacy"});
}

TORCH_LIBRARY_IMPL(quantized, PrivateUse1, library) {
  const RegistrationKeyGuard of_dense(c10::DispatchKey::PrivateUse1, "quantized");
  boxed<&pack>(library, {"linear_prepack_fp16", "make_quantized_cell_params", "make_quantized_cell_params_dynamic"});
  boxed<&refuse_legacy>(library, {"linear_prepack_fp16_legacy", "linear_unpack.legacy", "linear_unpack_fp16.legacy"});
}

TORCH_LIBRARY_IMPL(sparse, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard of_quantized(c10::DispatchKey::QuantizedPrivateUse1, "sparse");
  boxed<&pack>(library, {"qlinear_prepack"});
}

// PyTorch has them for every device, and reads host memory.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  boxed<&refuse_legacy>(
      library, {"fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation", "fbgemm_linear_int8_weight",
                "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight",
                "fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix", "fbgemm_pack_quantized_matrix.KN",
                "quantized_gru_cell", "quantized_lstm_cell", "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell"});
}

// The same for code that torch.compile made.
TORCH_LIBRARY_IMPL(_quantized, PrivateUse1, library) {
  const RegistrationKeyGuard of_dense(c10::DispatchKey::PrivateUse1, "_quantized");
  boxed<&refuse_legacy>(library,
                        {"_wrapped_linear_prepack", "_wrapped_quantized_linear_prepacked", "linear_prepack_fp16_legacy",
                         "wrapped_fbgemm_linear_fp16_weight", "wrapped_fbgemm_pack_gemm_matrix_fp16"});
}

}  // namespace

}  // namespace openreg::ops
