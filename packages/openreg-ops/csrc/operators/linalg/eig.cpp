// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues and eigenvectors, singular values, and what PyTorch's kernels compute from them: polar decompositions and
// square roots of Hermitian matrices.
#include <ATen/ops/isfinite.h>

#include "operators/linalg/outputs.h"
#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// Throws c10::Error if a value is not finite, because LAPACK does not terminate on infinities. Blocks to read the
// result, as on every device of PyTorch.
OutputSpec meta_values(const at::Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.eig");
  const c10::ScalarType dtype = c10::toComplexType(self.scalar_type());  // throws PyTorch's error for integers
  require_lapack_dtype("linalg_eig_out_cpu", self.scalar_type());
  TORCH_CHECK(at::isfinite(self).all().item<bool>(), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  return output_of(self.sizes().slice(0, self.dim() - 1), dtype).allowing({.casts = true});
}

std::array<OutputSpec, 2> meta_eig(const at::Tensor& self) {
  const OutputSpec values = meta_values(self);
  return {values, column_major(self.sizes(), values.dtype)};
}

#if OPENREG_TORCH_HAS_POLAR_DECOMPOSITION

OutputSpec meta_matrix_sqrth(const at::Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.matrix_sqrth");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_sqrth", /*allow_low_precision_dtypes=*/false);
  return output_of_shape(self);
}

#endif

// Both overloads are registered by hand, because the out= overload has another name.
const auto kEigvals = unstructured_operator<meta_values, op::_linalg_eigvals>(cpu::linalg_eigvals_outf,
                                                                              {.data_check = DataCheck::kAlways});

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_linalg_eigvals>(library, [](auto... args) { return kEigvals.functional(args...); }, kEigvals.op.traits);
  function<op::linalg_eigvals_out>(
      library, [](auto... args) -> at::Tensor& { return kEigvals.out(args...); }, kEigvals.op.traits);
  unstructured<meta_eig, op::linalg_eig>(library, cpu::linalg_eig_outf, {.data_check = DataCheck::kAlways});
  structured<meta::structured__linalg_eigh, op::_linalg_eigh>(
      library, cpu::_linalg_eigh_outf,
      {.refused = kBoolean | kIntegers | kReduced, .data_check = DataCheck::kAlways, .overlap = kNotItself});
  structured<meta::structured__linalg_svd, op::_linalg_svd>(
      library, cpu::_linalg_svd_outf, {.refused = kReduced, .data_check = DataCheck::kAlways, .overlap = kNotItself});
#if OPENREG_TORCH_HAS_POLAR_DECOMPOSITION
  structured<meta::structured_linalg_polar, op::linalg_polar>(
      library, cpu::linalg_polar_outf, {.refused = kReduced, .data_check = DataCheck::kAlways, .overlap = kNotItself});
  unstructured<meta_matrix_sqrth, op::linalg_matrix_sqrth>(library, cpu::linalg_matrix_sqrth,
                                                           {.data_check = DataCheck::kAlways});
#endif
}

}  // namespace

}  // namespace openreg::ops
