// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: linear algebra.
#include "common/structured.h"

#include <ATen/ops/_linalg_det_cpu_dispatch.h>
#include <ATen/ops/_linalg_det_meta.h>
#include <ATen/ops/_linalg_det_ops.h>
#include <ATen/ops/_linalg_eigh_cpu_dispatch.h>
#include <ATen/ops/_linalg_eigh_meta.h>
#include <ATen/ops/_linalg_eigh_ops.h>
#include <ATen/ops/_linalg_slogdet_cpu_dispatch.h>
#include <ATen/ops/_linalg_slogdet_meta.h>
#include <ATen/ops/_linalg_slogdet_ops.h>
#include <ATen/ops/_linalg_solve_ex_cpu_dispatch.h>
#include <ATen/ops/_linalg_solve_ex_meta.h>
#include <ATen/ops/_linalg_solve_ex_ops.h>
#include <ATen/ops/_linalg_svd_cpu_dispatch.h>
#include <ATen/ops/_linalg_svd_meta.h>
#include <ATen/ops/_linalg_svd_ops.h>
#include <ATen/ops/linalg_cholesky_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_cholesky_ex_meta.h>
#include <ATen/ops/linalg_cholesky_ex_ops.h>
#include <ATen/ops/linalg_cross_cpu_dispatch.h>
#include <ATen/ops/linalg_cross_meta.h>
#include <ATen/ops/linalg_cross_ops.h>
#include <ATen/ops/linalg_inv_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_inv_ex_meta.h>
#include <ATen/ops/linalg_inv_ex_ops.h>
#include <ATen/ops/linalg_ldl_factor_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_ldl_factor_ex_meta.h>
#include <ATen/ops/linalg_ldl_factor_ex_ops.h>
#include <ATen/ops/linalg_ldl_solve_cpu_dispatch.h>
#include <ATen/ops/linalg_ldl_solve_meta.h>
#include <ATen/ops/linalg_ldl_solve_ops.h>
#include <ATen/ops/linalg_lu_factor_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_lu_factor_ex_meta.h>
#include <ATen/ops/linalg_lu_factor_ex_ops.h>
#include <ATen/ops/linalg_lu_solve_cpu_dispatch.h>
#include <ATen/ops/linalg_lu_solve_meta.h>
#include <ATen/ops/linalg_lu_solve_ops.h>
#include <ATen/ops/linalg_qr_cpu_dispatch.h>
#include <ATen/ops/linalg_qr_meta.h>
#include <ATen/ops/linalg_qr_ops.h>
#include <ATen/ops/linalg_vector_norm_cpu_dispatch.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/triangular_solve_cpu_dispatch.h>
#include <ATen/ops/triangular_solve_meta.h>
#include <ATen/ops/triangular_solve_ops.h>

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(triangular_solve, triangular_solve_X, triangular_solve)

void warn_of_triangular_solve() {
  TORCH_WARN_ONCE(
      "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a future "
      "PyTorch release; torch.triangular_solve(B, A).solution is torch.linalg.solve_triangular(A, B, upper=True)");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED(library, _linalg_det, _linalg_det_result, _linalg_det)
  OPENREG_STRUCTURED(library, _linalg_eigh, _linalg_eigh_eigenvalues, _linalg_eigh)
  OPENREG_STRUCTURED(library, _linalg_slogdet, _linalg_slogdet_sign, _linalg_slogdet)
  OPENREG_STRUCTURED(library, _linalg_solve_ex, _linalg_solve_ex_result, _linalg_solve_ex)
  OPENREG_STRUCTURED(library, _linalg_svd, _linalg_svd_U, _linalg_svd)
  OPENREG_STRUCTURED(library, linalg_cholesky_ex, linalg_cholesky_ex_L, linalg_cholesky_ex)
  OPENREG_STRUCTURED(library, linalg_cross, linalg_cross_out, linalg_cross)
  OPENREG_STRUCTURED(library, linalg_inv_ex, linalg_inv_ex_inverse, linalg_inv_ex)
  OPENREG_STRUCTURED(library, linalg_ldl_factor_ex, linalg_ldl_factor_ex_out, linalg_ldl_factor_ex)
  OPENREG_STRUCTURED(library, linalg_ldl_solve, linalg_ldl_solve_out, linalg_ldl_solve)
  OPENREG_STRUCTURED(library, linalg_lu_factor_ex, linalg_lu_factor_ex_out, linalg_lu_factor_ex)
  OPENREG_STRUCTURED(library, linalg_lu_solve, linalg_lu_solve_out, linalg_lu_solve)
  OPENREG_STRUCTURED(library, linalg_qr, linalg_qr_out, linalg_qr)
  OPENREG_STRUCTURED(library, linalg_vector_norm, linalg_vector_norm_out, linalg_vector_norm)
  register_structured<WarnsAtCall<Spec_triangular_solve, &warn_of_triangular_solve>>(library);
}

}  // namespace

}  // namespace openreg::ops
