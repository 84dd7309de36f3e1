// SPDX-License-Identifier: BSD-3-Clause
// Layouts that this device does not store: a clear refusal instead of PyTorch's list of all dispatch keys.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

void refuse(const c10::OperatorHandle& op, const char* kind) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), ": the openreg device stores only strided tensors, not ", kind,
                              " ones; keep the tensor on the CPU, or make it dense (.to_dense(), .dequantize()) first");
}

void refuse_sparse(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  refuse(op, "sparse");
}

void refuse_quantized(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  refuse(op, "quantized");
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_quantized>());
}

}  // namespace

}  // namespace openreg::ops
