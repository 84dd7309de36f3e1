// SPDX-License-Identifier: BSD-3-Clause
// Products of sparse and strided matrices, whose results are strided, and solutions of triangular systems. The product
// of two sparse matrices has a number of elements that depends on data. The library of PyTorch's build determines which
// layouts can be combined. So the first launch of a signature is synchronous, and throws the kernel's exception
// (launch/sync_policy.h).
#include <ATen/ExpandUtils.h>
#include <ATen/ops/addmm_native.h>
#include <ATen/ops/addmv_native.h>
#include <ATen/ops/bmm_native.h>
#include <ATen/ops/triangular_solve_native.h>

#include "registration/declare.h"
#include "support/sparse_components.h"

namespace openreg::ops {

namespace {

// COO

void check_coo_product(const at::Tensor& sparse, const at::Tensor& dense) {
  TORCH_CHECK(sparse.layout() == c10::kSparse && dense.layout() == c10::kStrided,
              "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got "
              "'mat1' with layout ",
              sparse.layout(), " and 'mat2' with layout ", dense.layout());
  TORCH_CHECK(sparse.sparse_dim() == 2, "addmm: matrices expected, got ", sparse.sparse_dim(), "D tensor");
  TORCH_CHECK(sparse.dense_dim() == 0, "addmm: scalar values expected, got ", sparse.dense_dim(), "D values");
  TORCH_CHECK(dense.dim() == 2, "addmm: matrices expected, got ", dense.dim(), "D tensor");
  TORCH_CHECK(dense.size(0) == sparse.size(1), "addmm: Argument #3 (dense): Expected dim 0 size ", sparse.size(1),
              ", got ", dense.size(0));
}

OutputSpec meta_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                      const at::Scalar& /*beta*/, const at::Scalar& /*alpha*/) {
  const c10::DimVector sizes{mat1.size(0), mat2.size(1)};
  TORCH_CHECK(self.layout() == c10::kStrided,
              "addmm_sparse_dense: expected 't' to have strided layout, got tensor with layout ", self.layout());
  check_coo_product(mat1, mat2);
  TORCH_CHECK(at::is_expandable_to(self.sizes(), sizes), "addmm: Argument #1 (t): Expected size ", sizes, ", got ",
              self.sizes());
  OutputSpec spec = output_of(sizes, self.scalar_type());
  spec.quiet = true;
  spec.overlaps = true;
  return spec;
}

void check_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  check_coo_product(mat1, mat2);
  const OutputSpec spec = meta_addmm(self, mat1, mat2, beta, alpha);
  TORCH_CHECK(self.sizes() == spec.sizes, "addmm: Argument #1 (t): Expected size ", spec.sizes, ", got ", self.sizes());
}

OutputSpec meta_bmm(const at::Tensor& self, const at::Tensor& mat2) {
  TORCH_CHECK(mat2.layout() == c10::kStrided, "bmm_sparse: Tensor 'mat2' must be dense");
  TORCH_CHECK(self.layout() == c10::kSparse, "bmm_sparse: Tensor 'self' must be sparse");
  TORCH_CHECK(self.dense_dim() == 0, "bmm_sparse: Tensor 'self' must have 0 dense dims, but has ", self.dense_dim());
  TORCH_CHECK(self.sparse_dim() == 3, "bmm_sparse: Tensor 'self' must have 3 sparse dims, but has ", self.sparse_dim());
  TORCH_CHECK(mat2.dim() == 3, "bmm_sparse: Tensor 'mat2' must have 3 dims, but has ", mat2.dim());
  TORCH_CHECK(self.size(0) == mat2.size(0), "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
  TORCH_CHECK(self.size(2) == mat2.size(1), "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
  OutputSpec spec = output_of({self.size(0), self.size(1), mat2.size(2)}, mat2.scalar_type());
  spec.quiet = true;
  spec.overlaps = true;
  return spec;
}

// Compressed layouts

OutputSpec meta_compressed_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                                 const at::Scalar& /*beta*/, const at::Scalar& /*alpha*/, at::Tensor& out) {
  TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "addmm: expected mat1 and mat2 to be matrices, but got ", mat1.dim(),
              "-D and ", mat2.dim(), "-D tensors");
  TORCH_CHECK(mat1.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x",
              mat1.size(1), " and ", mat2.size(0), "x", mat2.size(1), ")");
  const c10::DimVector sizes{mat1.size(0), mat2.size(1)};
  TORCH_CHECK(out.is_same(self) ? self.sizes() == sizes : at::is_expandable_to(self.sizes(), sizes),
              "The input tensor must be a matrix with size ", sizes[0], "x", sizes[1], ", but got a ", self.dim(),
              "-D tensor with size ", self.sizes());
  return output_of(sizes, out.scalar_type());
}

const auto kAddmm =
    unstructured_overload<meta_compressed_addmm, op::addmm_out>(at::native::addmm_out_sparse_compressed_cpu);

at::Tensor& compressed_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                             const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  if (!is_sparse(self) && !is_sparse(out)) {
    return kAddmm(self, mat1, mat2, beta, alpha, out);
  }
  const OperandDeviceGuard device({op::addmm_out::name}, self, mat1, mat2, out);
  return call_synchronous<op::addmm_out>(kCompressed, self, mat1, mat2, beta, alpha, out);
}

OutputSpec meta_addmv(const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec, const at::Scalar& /*beta*/,
                      const at::Scalar& /*alpha*/, at::Tensor& out) {
  TORCH_CHECK(mat.layout() != c10::kSparseBsc, "torch.addmv: operation not supported for mat with SparseBsc layout");
  TORCH_CHECK(is_sparse(mat) && !is_sparse(vec) && !is_sparse(self) && !is_sparse(out),
              "torch.addmv: expected mat alone to be sparse");
  TORCH_CHECK(mat.dim() == 2, "addmv: Expected mat to be 2-D");
  TORCH_CHECK(vec.dim() == 1, "addmv: Expected vec to be 1-D");
  TORCH_CHECK(mat.size(1) == vec.size(0), "size mismatch, got mat (", mat.size(0), "x", mat.size(1), "), vec (",
              vec.size(0), ")");
  TORCH_CHECK(at::is_expandable_to(self.sizes(), mat.sizes().slice(0, 1)), "addmv: expected input of size ",
              mat.size(0), ", but got ", self.sizes());
  return output_of({mat.size(0)}, out.scalar_type());
}

void solve_kernel(const at::Tensor& self, const at::Tensor& A, bool upper, bool transpose, bool unitriangular,
                  at::Tensor& X) {
  at::Tensor unused;
  at::native::triangular_solve_out_sparse_csr_cpu(self, A, upper, transpose, unitriangular, X, unused);
}

std::tuple<at::Tensor&, at::Tensor&> triangular_solve(const at::Tensor& self, const at::Tensor& A, bool upper,
                                                      bool transpose, bool unitriangular, at::Tensor& X,
                                                      at::Tensor& M) {
  constexpr Operator kSolve{op::triangular_solve_X::name};
  const OperandDeviceGuard device(kSolve, self, A, X);
  TORCH_CHECK(is_sparse(A) && !is_sparse(self) && !is_sparse(X),
              "torch.triangular_solve: expected A alone to be sparse");
  TORCH_CHECK(A.dim() == 2 && self.dim() == 2 && A.size(0) == A.size(1) && A.size(1) == self.size(0),
              "torch.triangular_solve: expected a square matrix A and a matrix B of as many rows, but got ", A.sizes(),
              " and ", self.sizes());
  resize_out(X, self.sizes(), {}, self.options());
  launch_out_kernel<1>(kSolve, device, &solve_kernel, {X}, self, A, upper, transpose, unitriangular);
  return {X, M};
}

// The derivative of linear(), which is one operator on this device. On the CPU it is a composite of products that have
// their own derivatives. The gradient of a sparse operand is strided, as in those.
std::tuple<at::Tensor, at::Tensor, at::Tensor> sparse_linear_backward(const at::Tensor& input, const at::Tensor& grad,
                                                                      const at::Tensor& weight,
                                                                      std::array<bool, 3> mask) {
  const OperandDeviceGuard device({op::linear_backward::name}, input, grad, weight);
  if (weight.dim() == 1) {
    // A vector is treated as a matrix of one row. The output lacks the last dimension then, so the gradient gets it
    // here.
    auto [of_input, of_weight, of_bias] = sparse_linear_backward(input, grad.unsqueeze(-1), weight.unsqueeze(0), mask);
    return {of_input, mask[1] ? of_weight.squeeze(0) : of_weight, mask[2] ? of_bias.squeeze(0) : of_bias};
  }
  const auto as_rows = [](const at::Tensor& tensor) {
    return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
  };
  const at::Tensor rows = as_rows(grad);
  at::Tensor of_input;
  at::Tensor of_weight;
  at::Tensor of_bias;
  if (mask[0]) {
    of_input = rows.mm(weight.conj()).reshape(input.sizes());
  }
  if (mask[1]) {
    of_weight = as_rows(input).t().conj().mm(rows).t();
  }
  if (mask[2]) {
    of_bias = rows.sum(0);
  }
  return {std::move(of_input), std::move(of_weight), std::move(of_bias)};
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparsePrivateUse1);
  unstructured<meta_addmm, op::addmm>(library, at::native::addmm_out_sparse_dense_cpu);
  unstructured<check_addmm, op::addmm_>(library, at::native::s_addmm_sparse_dense_cpu_);
  unstructured<meta_bmm, op::bmm>(library, at::native::bmm_out_sparse_cpu);
  function<op::linear_backward>(library, sparse_linear_backward);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparseCsrPrivateUse1);
  function<op::addmm_out>(library, compressed_addmm);
  unstructured<meta_addmv, op::addmv_out>(library, at::native::addmv_out_sparse_compressed);
  function<op::linear_backward>(library, sparse_linear_backward);
  function<op::triangular_solve_X>(library, triangular_solve);
}

}  // namespace

}  // namespace openreg::ops
