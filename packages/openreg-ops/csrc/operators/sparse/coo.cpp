// SPDX-License-Identifier: BSD-3-Clause
// Operators on sparse tensors of the layout torch.sparse_coo. Most are PyTorch's functions that work on indices and
// values through other operators. Those whose results have a data-dependent number of elements are synchronous
// (csrc/registration/non_strided.h).
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims.h>

#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// The product of two sparse tensors is synchronous, because the indices that they have in common depend on data. With a
// number or a strided tensor, the indices of the other operand remain.
at::Tensor& multiply_coo(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const c10::Device device = device_of(op::mul_out::name, out, self, other);
  check_same_device_or_scalar(op::mul_out::name, device, self, other, out);
  const CurrentDeviceGuard current(device);
  const bool compares = self.is_sparse() && other.is_sparse() && self.dim() > 0 && other.dim() > 0;
  return compares ? call_synchronous<op::mul_out>(kCoo, self, other, out)
                  : call_host_composite<op::mul_out>(kCoo, self, other, out);
}

// Returns an empty tensor if a dimension is expanded to size 0, because PyTorch's function divides by that size, which
// ends the process.
at::Tensor broadcast_coo(const at::Tensor& self, c10::IntArrayRef size) {
  const OperandDeviceGuard device({op::_sparse_broadcast_to::name}, self);
  const auto added = static_cast<int64_t>(size.size()) - self.dim();
  bool expands_to_nothing = false;
  for (int64_t i = 0; i < static_cast<int64_t>(size.size()); ++i) {
    expands_to_nothing |= size[i] == 0 && (i < added || self.size(i - added) == 1);
  }
  if (!expands_to_nothing || !at::is_expandable_to(self.sizes(), size)) {
    return call_host_composite<op::_sparse_broadcast_to>(kCoo, self, size);
  }
  return at::_sparse_coo_tensor_with_dims(self.sparse_dim() + added, self.dense_dim(), size, self.options());
}

at::Tensor coalesce(const at::Tensor& self) {
  constexpr int64_t kFewest = 2;  // fewer cannot have equal indices
  const OperandDeviceGuard device({op::_coalesce::name}, self);
  return self._nnz() < kFewest ? call_host_composite<op::_coalesce>(kCoo, self)
                               : call_synchronous<op::_coalesce>(kCoo, self);
}

// Converts a coalesced matrix by way of CSR, which is not synchronous: distinct indices stay distinct in another order.
at::Tensor to_sparse_csc(const at::Tensor& self, std::optional<int64_t> dense_dim) {
  const OperandDeviceGuard device({op::_to_sparse_csc::name}, self);
  const bool is_matrix = self.sparse_dim() == 2 && !dense_dim.has_value();
  return is_matrix && self.is_coalesced() ? self.to_sparse_csr().to_sparse_csc()
                                          : call_host_composite<op::_to_sparse_csc>(kCoo, self, dense_dim);
}

// Operators that get or set components, sizes or memory.
constexpr const char* kCooComponents[] = {"_coalesced_",
                                          "_dimI",
                                          "_dimV",
                                          "_indices",
                                          "_nnz",
                                          "_pin_memory",
                                          "_sparse_coo_tensor_with_dims",
                                          "_sparse_coo_tensor_with_dims_and_tensors",
                                          "_values",
                                          "clone",
                                          "copy_",
                                          "copy_sparse_to_sparse_",
                                          "dense_dim",
                                          "empty.memory_format",
                                          "empty_like",
                                          "indices",
                                          "is_coalesced",
                                          "is_pinned",
                                          "resize_as_sparse_",
                                          "sparse_dim",
                                          "sparse_resize_",
                                          "sparse_resize_and_clear_",
                                          "values",
                                          "zero_",
                                          "zeros.out"};

// Elementwise operators. If they map zero to zero, the indices stay. Most require coalesced indices.
constexpr const char* kCooUnary[] = {"abs",  "asin",    "asinh", "atan",  "atanh", "ceil",  "deg2rad",
                                     "erf",  "erfinv",  "expm1", "floor", "frac",  "log1p", "nan_to_num",
                                     "neg",  "rad2deg", "round", "sgn",   "sign",  "sin",   "sinh",
                                     "sqrt", "tan",     "tanh",  "trunc"};

constexpr const char* kCooElementwise[] = {"add.Tensor",
                                           "add_.Tensor",
                                           "conj_physical.out",
                                           "div.Tensor",
                                           "div.Tensor_mode",
                                           "div.out",
                                           "div.out_mode",
                                           "div_.Tensor",
                                           "div_.Tensor_mode",
                                           "floor_divide",
                                           "floor_divide.out",
                                           "floor_divide_.Tensor",
                                           "isinf",
                                           "isnan",
                                           "isneginf",
                                           "isneginf.out",
                                           "isposinf",
                                           "isposinf.out",
                                           "mul.Tensor",
                                           "mul_.Tensor",
                                           "pow.Tensor_Scalar",
                                           "pow.Tensor_Scalar_out",
                                           "relu",
                                           "relu_",
                                           "signbit",
                                           "signbit.out",
                                           "sub.Tensor",
                                           "sub.out",
                                           "sub_.Tensor",
                                           "threshold_backward",
                                           "threshold_backward.grad_input",
                                           "view_as_complex",
                                           "view_as_real"};

constexpr const char* kCooReductionsAndShapes[] = {"any",
                                                   "cat",
                                                   "mm",
                                                   "mm.out",
                                                   "mv",
                                                   "narrow_copy",
                                                   "native_norm",
                                                   "native_norm.ScalarOpt_dim_dtype",
                                                   "norm.ScalarOpt_dim",
                                                   "norm.ScalarOpt_dim_dtype",
                                                   "permute",
                                                   "sum",
                                                   "sum.dim_IntList",
                                                   "unsqueeze"};

constexpr const char* kCooConversions[] = {"_to_dense",      "_to_sparse",     "_to_sparse.sparse_dim",
                                           "_to_sparse_bsc", "_to_sparse_bsr", "_to_sparse_csr"};

constexpr const char* kCooSynchronous[] = {"_sparse_sparse_matmul", "hspmm", "hspmm.out", "index_select",
                                           "sspaddmm.out"};

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparsePrivateUse1);
  host_composite<kCoo>(library, kCooComponents);
  host_composite_overloads<kCoo>(library, kCooUnary);
  host_composite<kCoo>(library, kCooElementwise);
  host_composite<kCoo>(library, kCooReductionsAndShapes);
#if OPENREG_TORCH_HAS_SPARSE_VECTOR_NORM
  host_composite<kCoo>(library, {"linalg_vector_norm"});
#endif
  host_composite<kCoo>(library, kCooConversions);
  synchronous<kCoo>(library, kCooSynchronous);
  function<op::_sparse_broadcast_to>(library, broadcast_coo);
  function<op::_coalesce>(library, coalesce);
  function<op::_to_sparse_csc>(library, to_sparse_csc);
  function<op::mul_out>(library, multiply_coo);
}

}  // namespace

}  // namespace openreg::ops
