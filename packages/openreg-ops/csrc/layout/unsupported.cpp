// SPDX-License-Identifier: BSD-3-Clause
// Layouts that this device does not store: a clear refusal instead of PyTorch's list of all dispatch keys. The indices
// of sparse layouts are tensors as any other.
#include <ATen/core/dispatch/Dispatcher.h>

#include "declare/declare.h"

namespace openreg::ops {

namespace {

void refuse(const c10::OperatorHandle& op, const char* kind) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), ": the openreg device stores only strided tensors, not ", kind,
                              " ones; keep the tensor on the CPU, or make it dense (.to_dense(), .dequantize()) first");
}

void refuse_sparse(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  refuse(op, "sparse");
}

// Nested tensors of the strided layout: torch.nn.TransformerEncoder asks whether a padded batch can become one, and
// computes on the padded batch where it cannot.
bool nested_tensor_from_mask_left_aligned(const at::Tensor& /*tensor*/, const at::Tensor& /*mask*/) {
  return false;
}

at::Tensor nested_tensor_from_mask(const at::Tensor& /*tensor*/, const at::Tensor& /*mask*/, bool /*mask_check*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "_nested_tensor_from_mask: the openreg device stores only strided tensors, not "
                              "nested ones; keep the padded tensor and its mask");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelRule kWhole{.refused = kBoolean | kFloating | kComplex};
  structured<meta::structured__convert_indices_from_coo_to_csr, op::_convert_indices_from_coo_to_csr>(
      library, cpu::_convert_indices_from_coo_to_csr_outf, kWhole);
  structured<meta::structured__convert_indices_from_csr_to_coo, op::_convert_indices_from_csr_to_coo>(
      library, cpu::_convert_indices_from_csr_to_coo_outf, kWhole);
  function<op::_nested_tensor_from_mask>(library, nested_tensor_from_mask);
  function<op::_nested_tensor_from_mask_left_aligned>(library, nested_tensor_from_mask_left_aligned);
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_sparse>());
}

}  // namespace

}  // namespace openreg::ops
