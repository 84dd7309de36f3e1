// SPDX-License-Identifier: BSD-3-Clause
// A fallback for operators that sparse tensors do not have. It throws a clear error instead of PyTorch's, which lists
// all dispatch keys.
#include <ATen/core/dispatch/Dispatcher.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

void throw_unsupported_sparse(const c10::OperatorHandle& op, torch::jit::Stack* /*stack*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(),
                              ": PyTorch has no such operator for sparse tensors of this layout on the openreg device, "
                              "as on the CPU; make the tensor dense (.to_dense()), or convert its layout, first");
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&throw_unsupported_sparse>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&throw_unsupported_sparse>());
}

}  // namespace

}  // namespace openreg::ops
