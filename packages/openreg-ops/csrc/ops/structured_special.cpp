// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: special functions.
#include "common/structured.h"

#include <ATen/ops/special_airy_ai_cpu_dispatch.h>
#include <ATen/ops/special_airy_ai_meta.h>
#include <ATen/ops/special_airy_ai_ops.h>
#include <ATen/ops/special_bessel_j0_cpu_dispatch.h>
#include <ATen/ops/special_bessel_j0_meta.h>
#include <ATen/ops/special_bessel_j0_ops.h>
#include <ATen/ops/special_bessel_j1_cpu_dispatch.h>
#include <ATen/ops/special_bessel_j1_meta.h>
#include <ATen/ops/special_bessel_j1_ops.h>
#include <ATen/ops/special_bessel_y0_cpu_dispatch.h>
#include <ATen/ops/special_bessel_y0_meta.h>
#include <ATen/ops/special_bessel_y0_ops.h>
#include <ATen/ops/special_bessel_y1_cpu_dispatch.h>
#include <ATen/ops/special_bessel_y1_meta.h>
#include <ATen/ops/special_bessel_y1_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_t_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_t_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_t_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_u_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_u_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_u_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_v_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_v_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_v_ops.h>
#include <ATen/ops/special_chebyshev_polynomial_w_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_w_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_w_ops.h>
#include <ATen/ops/special_entr_cpu_dispatch.h>
#include <ATen/ops/special_entr_meta.h>
#include <ATen/ops/special_entr_ops.h>
#include <ATen/ops/special_erfcx_cpu_dispatch.h>
#include <ATen/ops/special_erfcx_meta.h>
#include <ATen/ops/special_erfcx_ops.h>
#include <ATen/ops/special_hermite_polynomial_h_cpu_dispatch.h>
#include <ATen/ops/special_hermite_polynomial_h_meta.h>
#include <ATen/ops/special_hermite_polynomial_h_ops.h>
#include <ATen/ops/special_hermite_polynomial_he_cpu_dispatch.h>
#include <ATen/ops/special_hermite_polynomial_he_meta.h>
#include <ATen/ops/special_hermite_polynomial_he_ops.h>
#include <ATen/ops/special_i0e_cpu_dispatch.h>
#include <ATen/ops/special_i0e_meta.h>
#include <ATen/ops/special_i0e_ops.h>
#include <ATen/ops/special_i1_cpu_dispatch.h>
#include <ATen/ops/special_i1_meta.h>
#include <ATen/ops/special_i1_ops.h>
#include <ATen/ops/special_i1e_cpu_dispatch.h>
#include <ATen/ops/special_i1e_meta.h>
#include <ATen/ops/special_i1e_ops.h>
#include <ATen/ops/special_laguerre_polynomial_l_cpu_dispatch.h>
#include <ATen/ops/special_laguerre_polynomial_l_meta.h>
#include <ATen/ops/special_laguerre_polynomial_l_ops.h>
#include <ATen/ops/special_legendre_polynomial_p_cpu_dispatch.h>
#include <ATen/ops/special_legendre_polynomial_p_meta.h>
#include <ATen/ops/special_legendre_polynomial_p_ops.h>
#include <ATen/ops/special_log_ndtr_cpu_dispatch.h>
#include <ATen/ops/special_log_ndtr_meta.h>
#include <ATen/ops/special_log_ndtr_ops.h>
#include <ATen/ops/special_modified_bessel_i0_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_i0_meta.h>
#include <ATen/ops/special_modified_bessel_i0_ops.h>
#include <ATen/ops/special_modified_bessel_i1_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_i1_meta.h>
#include <ATen/ops/special_modified_bessel_i1_ops.h>
#include <ATen/ops/special_modified_bessel_k0_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_k0_meta.h>
#include <ATen/ops/special_modified_bessel_k0_ops.h>
#include <ATen/ops/special_modified_bessel_k1_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_k1_meta.h>
#include <ATen/ops/special_modified_bessel_k1_ops.h>
#include <ATen/ops/special_ndtri_cpu_dispatch.h>
#include <ATen/ops/special_ndtri_meta.h>
#include <ATen/ops/special_ndtri_ops.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_cpu_dispatch.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_meta.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_ops.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_cpu_dispatch.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_meta.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_ops.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_ops.h>
#include <ATen/ops/special_spherical_bessel_j0_cpu_dispatch.h>
#include <ATen/ops/special_spherical_bessel_j0_meta.h>
#include <ATen/ops/special_spherical_bessel_j0_ops.h>
#include <ATen/ops/special_xlog1py_cpu_dispatch.h>
#include <ATen/ops/special_xlog1py_meta.h>
#include <ATen/ops/special_xlog1py_ops.h>
#include <ATen/ops/special_zeta_cpu_dispatch.h>
#include <ATen/ops/special_zeta_meta.h>
#include <ATen/ops/special_zeta_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED(library, special_airy_ai, special_airy_ai_out, special_airy_ai)
  OPENREG_STRUCTURED(library, special_bessel_j0, special_bessel_j0_out, special_bessel_j0)
  OPENREG_STRUCTURED(library, special_bessel_j1, special_bessel_j1_out, special_bessel_j1)
  OPENREG_STRUCTURED(library, special_bessel_y0, special_bessel_y0_out, special_bessel_y0)
  OPENREG_STRUCTURED(library, special_bessel_y1, special_bessel_y1_out, special_bessel_y1)
  OPENREG_STRUCTURED(library, special_chebyshev_polynomial_t, special_chebyshev_polynomial_t_out,
                     special_chebyshev_polynomial_t)
  OPENREG_STRUCTURED(library, special_chebyshev_polynomial_u, special_chebyshev_polynomial_u_out,
                     special_chebyshev_polynomial_u)
  OPENREG_STRUCTURED(library, special_chebyshev_polynomial_v, special_chebyshev_polynomial_v_out,
                     special_chebyshev_polynomial_v)
  OPENREG_STRUCTURED(library, special_chebyshev_polynomial_w, special_chebyshev_polynomial_w_out,
                     special_chebyshev_polynomial_w)
  OPENREG_STRUCTURED(library, special_entr, special_entr_out, special_entr)
  OPENREG_STRUCTURED(library, special_erfcx, special_erfcx_out, special_erfcx)
  OPENREG_STRUCTURED(library, special_hermite_polynomial_h, special_hermite_polynomial_h_out,
                     special_hermite_polynomial_h)
  OPENREG_STRUCTURED(library, special_hermite_polynomial_he, special_hermite_polynomial_he_out,
                     special_hermite_polynomial_he)
  OPENREG_STRUCTURED(library, special_i0e, special_i0e_out, special_i0e)
  OPENREG_STRUCTURED(library, special_i1, special_i1_out, special_i1)
  OPENREG_STRUCTURED(library, special_i1e, special_i1e_out, special_i1e)
  OPENREG_STRUCTURED(library, special_laguerre_polynomial_l, special_laguerre_polynomial_l_out,
                     special_laguerre_polynomial_l)
  OPENREG_STRUCTURED(library, special_legendre_polynomial_p, special_legendre_polynomial_p_out,
                     special_legendre_polynomial_p)
  OPENREG_STRUCTURED(library, special_log_ndtr, special_log_ndtr_out, special_log_ndtr)
  OPENREG_STRUCTURED(library, special_modified_bessel_i0, special_modified_bessel_i0_out, special_modified_bessel_i0)
  OPENREG_STRUCTURED(library, special_modified_bessel_i1, special_modified_bessel_i1_out, special_modified_bessel_i1)
  OPENREG_STRUCTURED(library, special_modified_bessel_k0, special_modified_bessel_k0_out, special_modified_bessel_k0)
  OPENREG_STRUCTURED(library, special_modified_bessel_k1, special_modified_bessel_k1_out, special_modified_bessel_k1)
  OPENREG_STRUCTURED(library, special_ndtri, special_ndtri_out, special_ndtri)
  OPENREG_STRUCTURED(library, special_scaled_modified_bessel_k0, special_scaled_modified_bessel_k0_out,
                     special_scaled_modified_bessel_k0)
  OPENREG_STRUCTURED(library, special_scaled_modified_bessel_k1, special_scaled_modified_bessel_k1_out,
                     special_scaled_modified_bessel_k1)
  OPENREG_STRUCTURED(library, special_shifted_chebyshev_polynomial_t, special_shifted_chebyshev_polynomial_t_out,
                     special_shifted_chebyshev_polynomial_t)
  OPENREG_STRUCTURED(library, special_shifted_chebyshev_polynomial_u, special_shifted_chebyshev_polynomial_u_out,
                     special_shifted_chebyshev_polynomial_u)
  OPENREG_STRUCTURED(library, special_shifted_chebyshev_polynomial_v, special_shifted_chebyshev_polynomial_v_out,
                     special_shifted_chebyshev_polynomial_v)
  OPENREG_STRUCTURED(library, special_shifted_chebyshev_polynomial_w, special_shifted_chebyshev_polynomial_w_out,
                     special_shifted_chebyshev_polynomial_w)
  OPENREG_STRUCTURED(library, special_spherical_bessel_j0, special_spherical_bessel_j0_out, special_spherical_bessel_j0)
  OPENREG_STRUCTURED(library, special_xlog1py, special_xlog1py_out, special_xlog1py)
  OPENREG_STRUCTURED(library, special_zeta, special_zeta_out, special_zeta)
}
