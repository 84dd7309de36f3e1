// SPDX-License-Identifier: BSD-3-Clause
// Distances between rows, and the derivatives of gamma and Dirichlet samples.
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns the specification of an output with the batch dimensions of both operands, broadcast, then `rows` and
// `columns`.
OutputSpec batched_output(const at::Tensor& x1, const at::Tensor& x2, int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes = at::infer_size(x1.sizes().slice(0, x1.dim() - 2), x2.sizes().slice(0, x2.dim() - 2));
  sizes.push_back(rows);
  sizes.push_back(columns);
  return output_of(sizes, x1.scalar_type());
}

OutputSpec meta_cdist(const at::Tensor& x1, const at::Tensor& x2, double p, std::optional<int64_t> mode) {
  TORCH_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TORCH_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TORCH_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
              " X2: ", x2.size(-1));
  TORCH_CHECK(at::isFloatingType(x1.scalar_type()),
              "cdist only supports floating-point dtypes, X1 got: ", x1.scalar_type());
  TORCH_CHECK(at::isFloatingType(x2.scalar_type()),
              "cdist only supports floating-point dtypes, X2 got: ", x2.scalar_type());
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  TORCH_CHECK(mode.value_or(0) >= 0 && mode.value_or(0) <= 2, "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  return batched_output(x1, x2, x1.size(-2), x2.size(-2));
}

OutputSpec meta_cdist_backward(const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2, double p,
                               const at::Tensor& cdist) {
  const c10::DimVector distances = meta_cdist(x1, x2, p, std::nullopt).sizes;
  expect(op::_cdist_backward::name, "x2", x2, x2.sizes(), x1.scalar_type());
  expect(op::_cdist_backward::name, "grad", grad, distances, x1.scalar_type());
  expect(op::_cdist_backward::name, "cdist", cdist, distances, x1.scalar_type());
  OutputSpec spec = batched_output(x1, x2, x1.size(-2), x1.size(-1));
  // The kernel does not broadcast if there is nothing to compute.
  const bool nothing = x2.size(-2) == 0 || std::count(spec.sizes.begin(), spec.sizes.end(), 0) > 0;
  return nothing ? output_like(x1) : spec;
}

OutputSpec meta_pdist(const at::Tensor& self, double p) {
  TORCH_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  TORCH_CHECK(p >= 0, "pdist only supports non-negative p values");
  const int64_t rows = self.size(0);
  return output_of({rows <= 1 ? 0 : rows * (rows - 1) / 2}, self.scalar_type());
}

// Returns zeros for fewer than two rows, because PyTorch's kernel fails on them.
at::Tensor pdist_backward(const at::Tensor& grad, const at::Tensor& self, double p, const at::Tensor& pdist) {
  return self.size(0) <= 1 ? at::zeros(self.sizes(), self.options()) : cpu::_pdist_backward(grad, self, p, pdist);
}

OutputSpec meta_pdist_backward(const at::Tensor& grad, const at::Tensor& self, double p, const at::Tensor& pdist) {
  const OutputSpec distances = meta_pdist(self, p);
  TORCH_CHECK(self.is_contiguous(), "_pdist_backward requires self to be contiguous");
  TORCH_CHECK(pdist.is_contiguous(), "_pdist_backward requires pdist to be contiguous");
  expect(op::_pdist_backward::name, "grad", grad, distances.sizes, distances.dtype);
  expect(op::_pdist_backward::name, "pdist", pdist, distances.sizes, distances.dtype);
  return output_of_shape(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_cdist, op::_cdist_forward>(library, cpu::_cdist_forward, {.refused = kReduced});
  unstructured<meta_cdist_backward, op::_cdist_backward>(library, cpu::_cdist_backward,
                                                         {.refused = kNotFloating | kReduced});
  unstructured<[](const auto&... operands) { return output_of_operands(operands...); }, op::_dirichlet_grad>(
      library, cpu::_dirichlet_grad);
  unstructured<meta_pdist_backward, op::_pdist_backward>(library, pdist_backward, {.refused = kNotFloating | kReduced});
  unstructured<meta_pdist, op::_pdist_forward>(library, cpu::_pdist_forward, {.refused = kNotFloating | kReduced});
  unstructured<like_operands, op::_standard_gamma_grad>(library, cpu::_standard_gamma_grad);
}

}  // namespace

}  // namespace openreg::ops
