// SPDX-License-Identifier: BSD-3-Clause
// Sums of a strided and a sparse tensor, which are strided. An optimizer's step with a sparse gradient and to_dense()
// compute such sums. The sum of two sparse tensors has a number of elements that depends on data.
#include <ATen/ops/add_native.h>

#include "registration/declare.h"
#include "support/sparse_components.h"

namespace openreg::ops {

namespace {

OutputSpec meta_sum(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected 'self' and 'other' to have same size, but self has size ",
              self.sizes(), " while other has size ", other.sizes(),
              " (FYI: op2-sparse addition does not currently support broadcasting)");
  const c10::ScalarType common = c10::promoteTypes(self.scalar_type(), other.scalar_type());
  TORCH_CHECK(c10::canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ",
              out.scalar_type(), " in add operation");
  OutputSpec spec = output_of(self.sizes(), out.scalar_type());
  spec.quiet = true;
  return spec;
}

OutputSpec meta_coo(const at::Tensor& self, const at::Tensor& other, const at::Scalar& /*alpha*/, at::Tensor& out) {
  TORCH_CHECK(!is_sparse(out), "add: expected 'out' to be strided, as one of the operands is, but got layout ",
              out.layout());
  return meta_sum(self, other, out);
}

OutputSpec meta_compressed(const at::Tensor& self, const at::Tensor& other, const at::Scalar& /*alpha*/,
                           at::Tensor& out) {
  const at::Tensor& sparse = is_sparse(self) ? self : other;
  TORCH_CHECK(sparse.layout() == c10::kSparseCsr || sparse.layout() == c10::kSparseCsc,
              "add: expected a sparse operand of layout SparseCsr or SparseCsc beside a strided one, but got ",
              sparse.layout());
  // PyTorch's kernel treats dense dimensions as elements, and would read beyond the values.
  TORCH_CHECK(sparse.dense_dim() == 0,
              "add: expected a sparse operand without dense dimensions beside a strided one, "
              "but got ",
              sparse.dense_dim(), "; make it dense (.to_dense()) first");
  TORCH_CHECK(out.is_contiguous(), "out argument must be contiguous, but got: ", out.suggest_memory_format());
  return meta_sum(self, other, out);
}

// The overloads for strided results. add_coo() and add_compressed() select them.
const auto kAddCoo = unstructured_overload<meta_coo, op::add_out>(at::native::add_out_sparse_cpu);
const auto kAddCompressed =
    unstructured_overload<meta_compressed, op::add_out>(at::native::add_out_sparse_compressed_cpu);

at::Tensor& add_coo(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  if (!is_sparse(self)) {
    return kAddCoo(self, other, alpha, out);
  }
  const OperandDeviceGuard device({op::add_out::name}, self, other, out);
  // Other operators join values that are not contiguous, without comparing indices.
  const bool compares = !is_sparse(other) || (self._nnz() > 0 && other._nnz() > 0 && self._values().is_contiguous() &&
                                              other._values().is_contiguous());
  return compares ? call_synchronous<op::add_out>(kCoo, self, other, alpha, out)
                  : call_host_composite<op::add_out>(kCoo, self, other, alpha, out);
}

at::Tensor& add_compressed(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  if (!is_sparse(self) || !is_sparse(other)) {
    return kAddCompressed(self, other, alpha, out);
  }
  const OperandDeviceGuard device({op::add_out::name}, self, other, out);
  return self.is_same(other) ? call_host_composite<op::add_out>(kCompressed, self, other, alpha, out)
                             : call_synchronous<op::add_out>(kCompressed, self, other, alpha, out);
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparsePrivateUse1);
  function<op::add_out>(library, add_coo);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparseCsrPrivateUse1);
  function<op::add_out>(library, add_compressed);
}

}  // namespace

}  // namespace openreg::ops
