// SPDX-License-Identifier: BSD-3-Clause
// Described operators: distances between rows, and the derivatives of gamma and Dirichlet samples.
#include "common/described.h"

#include <ATen/ops/_cdist_backward_cpu_dispatch.h>
#include <ATen/ops/_cdist_backward_ops.h>
#include <ATen/ops/_cdist_forward_cpu_dispatch.h>
#include <ATen/ops/_cdist_forward_ops.h>
#include <ATen/ops/_dirichlet_grad_cpu_dispatch.h>
#include <ATen/ops/_dirichlet_grad_ops.h>
#include <ATen/ops/_pdist_backward_cpu_dispatch.h>
#include <ATen/ops/_pdist_backward_ops.h>
#include <ATen/ops/_pdist_forward_cpu_dispatch.h>
#include <ATen/ops/_pdist_forward_ops.h>
#include <ATen/ops/_standard_gamma_grad_cpu_dispatch.h>
#include <ATen/ops/_standard_gamma_grad_ops.h>

#include "common/pointwise_spec.h"

namespace openreg::ops {

namespace {

// Batches of both operands, broadcast, then `rows` and `columns`.
OutputSpec batched_output(const at::Tensor& x1, const at::Tensor& x2, int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes = at::infer_size(x1.sizes().slice(0, x1.dim() - 2), x2.sizes().slice(0, x2.dim() - 2));
  sizes.push_back(rows);
  sizes.push_back(columns);
  return output_of(sizes, x1.scalar_type());
}

OutputSpec describe_cdist(const at::Tensor& x1, const at::Tensor& x2, double p, std::optional<int64_t> mode) {
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

OutputSpec describe_cdist_backward(const at::Tensor& /*grad*/, const at::Tensor& x1, const at::Tensor& x2, double /*p*/,
                                   const at::Tensor& /*cdist*/) {
  OutputSpec spec = batched_output(x1, x2, x1.size(-2), x1.size(-1));
  // The kernel does not broadcast where there is nothing to compute.
  const bool nothing = x2.size(-2) == 0 || std::count(spec.sizes.begin(), spec.sizes.end(), 0) > 0;
  return nothing ? output_like(x1) : spec;
}

OutputSpec describe_pdist(const at::Tensor& self, double p) {
  TORCH_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  TORCH_CHECK(p >= 0, "pdist only supports non-negative p values");
  const int64_t rows = self.size(0);
  return output_of({rows <= 1 ? 0 : rows * (rows - 1) / 2}, self.scalar_type());
}

OutputSpec describe_dirichlet_grad(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& total) {
  return output_of_operands(x, alpha, total);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED(library, _cdist_forward, at::cpu::_cdist_forward, describe_cdist)
  OPENREG_DESCRIBED(library, _cdist_backward, at::cpu::_cdist_backward, describe_cdist_backward)
  OPENREG_DESCRIBED(library, _pdist_forward, at::cpu::_pdist_forward, describe_pdist)
  OPENREG_DESCRIBED(library, _pdist_backward, at::cpu::_pdist_backward, shape_of_second)
  OPENREG_DESCRIBED(library, _standard_gamma_grad, at::cpu::_standard_gamma_grad, like_operands)
  OPENREG_DESCRIBED(library, _dirichlet_grad, at::cpu::_dirichlet_grad, describe_dirichlet_grad)
}

}  // namespace

}  // namespace openreg::ops
