// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues and eigenvectors of general matrices. Symmetric ones stand in the structured table.
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_linalg_eigvals_cpu_dispatch.h>
#include <ATen/ops/_linalg_eigvals_ops.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_eig_cpu_dispatch.h>
#include <ATen/ops/linalg_eig_ops.h>
#include <ATen/ops/linalg_eigvals_cpu_dispatch.h>
#include <ATen/ops/linalg_eigvals_ops.h>

#include "common/described.h"
#include "common/linalg_spec.h"

namespace openreg::ops {

namespace {

// LAPACK does not end on infinities, so PyTorch looks for them first, on every device: the host waits.
void check_finite(const at::Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.eig");
  (void)c10::toComplexType(self.scalar_type());  // PyTorch's error for integers
  require_lapack_dtype("linalg_eig_out_cpu", self.scalar_type());
  TORCH_CHECK(at::isfinite(self).all().item<bool>(), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
}

OutputSpec describe_values(const at::Tensor& self) {
  OutputSpec spec = output_of(self.sizes().slice(0, self.dim() - 1), c10::toComplexType(self.scalar_type()));
  spec.casts = true;
  return spec;
}

std::array<OutputSpec, 2> describe_eig(const at::Tensor& self) {
  return {describe_values(self), column_major(self.sizes(), c10::toComplexType(self.scalar_type()))};
}

OPENREG_DESCRIBED_SPEC(linalg_eig, linalg_eig_out, at::cpu::linalg_eig_outf, describe_eig)
OPENREG_DESCRIBED_SPEC(_linalg_eigvals, linalg_eigvals_out, at::cpu::linalg_eigvals_outf, describe_values)

std::tuple<at::Tensor, at::Tensor> eig(const at::Tensor& self) {
  check_finite(self);
  return DescribedOf<Spec_linalg_eig>::functional(self);
}

std::tuple<at::Tensor&, at::Tensor&> eig_out(const at::Tensor& self, at::Tensor& values, at::Tensor& vectors) {
  check_finite(self);
  return DescribedOf<Spec_linalg_eig>::out(self, values, vectors);
}

at::Tensor eigvals(const at::Tensor& self) {
  check_finite(self);
  return DescribedOf<Spec__linalg_eigvals>::functional(self);
}

at::Tensor& eigvals_out(const at::Tensor& self, at::Tensor& out) {
  check_finite(self);
  return DescribedOf<Spec__linalg_eigvals>::out(self, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_linalg_eigvals", TORCH_FN(eigvals));
  library.impl("linalg_eig", TORCH_FN(eig));
  library.impl("linalg_eig.out", TORCH_FN(eig_out));
  library.impl("linalg_eigvals.out", TORCH_FN(eigvals_out));
}

}  // namespace

}  // namespace openreg::ops
