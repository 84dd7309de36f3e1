// SPDX-License-Identifier: BSD-3-Clause
// Operators on sparse tensors of the layouts torch.sparse_csr, sparse_csc, sparse_bsr and sparse_bsc, which share a
// dispatch key. Most are PyTorch's functions that work on indices and values through other operators. Those whose
// results have a data-dependent number of elements are synchronous (csrc/registration/non_strided.h).
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Converts to blocks. The call is synchronous unless the operand has blocks, because PyTorch reads the indices to find
// them.
template <class Op>
at::Tensor to_blocks(const at::Tensor& self, c10::IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  const OperandDeviceGuard device({Op::name}, self);
  const bool has_none = self.layout() == c10::kSparseCsr || self.layout() == c10::kSparseCsc;
  return has_none ? call_synchronous<Op>(kCompressed, self, blocksize, dense_dim)
                  : call_host_composite<Op>(kCompressed, self, blocksize, dense_dim);
}

// Operators that get or set components, sizes or memory.
constexpr const char* kCompressedComponents[] = {"_nnz",
                                                 "_pin_memory",
                                                 "ccol_indices",
                                                 "clone",
                                                 "col_indices",
                                                 "copy_",
                                                 "crow_indices",
                                                 "dense_dim",
                                                 "empty.memory_format",
                                                 "empty_like",
                                                 "is_pinned",
                                                 "resize_",
                                                 "resize_as_sparse_",
                                                 "row_indices",
                                                 "select.int",
                                                 "select_copy.int",
                                                 "sparse_dim",
                                                 "values",
                                                 "zero_"};

// Elementwise operators that map zero to zero.
constexpr const char* kCompressedUnary[] = {"abs",    "asin",  "asinh", "atan", "atanh", "ceil", "deg2rad", "erf",
                                            "erfinv", "expm1", "floor", "frac", "log1p", "neg",  "rad2deg", "round",
                                            "sgn",    "sign",  "sin",   "sinh", "sqrt",  "tan",  "tanh",    "trunc"};

constexpr const char* kCompressedElementwise[] = {"_conj_physical",
                                                  "add.Tensor",
                                                  "add_.Tensor",
                                                  "angle",
                                                  "angle.out",
                                                  "conj_physical.out",
                                                  "conj_physical_",
                                                  "fill_.Scalar",
                                                  "isinf",
                                                  "isnan",
                                                  "isneginf",
                                                  "isneginf.out",
                                                  "isposinf",
                                                  "isposinf.out",
                                                  "mul.Scalar",
                                                  "mul.out",
                                                  "mul_.Scalar",
                                                  "mul_.Tensor",
                                                  "normal_",
                                                  "relu",
                                                  "relu_",
                                                  "signbit",
                                                  "signbit.out",
                                                  "threshold_backward",
                                                  "threshold_backward.grad_input"};

constexpr const char* kCompressedProductsAndSums[] = {"addmm", "mm", "mm.out", "sum", "sum.dim_IntList"};

constexpr const char* kCompressedConversions[] = {"_to_dense", "_to_sparse", "_to_sparse.sparse_dim", "_to_sparse_csc",
                                                  "_to_sparse_csr"};

constexpr const char* kCompressedSynchronous[] = {"_sparse_csr_prod.dim_dtype", "_sparse_csr_sum.dim_dtype"};

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparseCsrPrivateUse1);
  host_composite<kCompressed>(library, kCompressedComponents);
  host_composite_overloads<kCompressed>(library, kCompressedUnary);
  host_composite<kCompressed>(library, kCompressedElementwise);
  host_composite<kCompressed>(library, kCompressedProductsAndSums);
  host_composite<kCompressed>(library, kCompressedConversions);
  synchronous<kCompressed>(library, kCompressedSynchronous);
  function<op::_to_sparse_bsc>(library, to_blocks<op::_to_sparse_bsc>);
  function<op::_to_sparse_bsr>(library, to_blocks<op::_to_sparse_bsr>);
}

}  // namespace

}  // namespace openreg::ops
