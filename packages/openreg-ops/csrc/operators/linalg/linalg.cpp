// SPDX-License-Identifier: BSD-3-Clause
// Determinants, norms, cross products and exponentials.
#include <ATen/native/LinearAlgebraUtils.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

OutputSpec meta_matrix_exp(const at::Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  return output_of_shape(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured__linalg_det, op::_linalg_det>(library, cpu::_linalg_det_outf,
                                                            {.refused = kReduced, .overlap = kNotItself});
  structured<meta::structured__linalg_slogdet, op::_linalg_slogdet>(library, cpu::_linalg_slogdet_outf,
                                                                    {.overlap = kNotItself});
  structured<meta::structured_linalg_cross, op::linalg_cross>(
      library, cpu::linalg_cross_outf, {.refused = kBoolean, .dtype_match = DtypeMatch::kAll, .overlap = kNoOperand});
  unstructured<meta_matrix_exp, op::linalg_matrix_exp>(library, cpu::linalg_matrix_exp);
  structured<meta::structured_linalg_vector_norm, op::linalg_vector_norm>(
      library, cpu::linalg_vector_norm_outf, checked(KernelTraits{.overlap = kNotItselfNoPart}));
}

}  // namespace

}  // namespace openreg::ops
