// SPDX-License-Identifier: BSD-3-Clause
// Special functions (torch.special) that are operators of their own.
#include "registration/declare.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kNoReduced{.refused = kReduced | kComplex};
  structured<meta::structured_special_airy_ai, op::special_airy_ai>(library, cpu::special_airy_ai_outf, kNoReduced);
  structured<meta::structured_special_bessel_j0, op::special_bessel_j0>(library, cpu::special_bessel_j0_outf,
                                                                        kNoReduced);
  structured<meta::structured_special_bessel_j1, op::special_bessel_j1>(library, cpu::special_bessel_j1_outf,
                                                                        kNoReduced);
  structured<meta::structured_special_bessel_y0, op::special_bessel_y0>(library, cpu::special_bessel_y0_outf,
                                                                        kNoReduced);
  structured<meta::structured_special_bessel_y1, op::special_bessel_y1>(library, cpu::special_bessel_y1_outf,
                                                                        kNoReduced);
  structured<meta::structured_special_chebyshev_polynomial_t, op::special_chebyshev_polynomial_t>(
      library, cpu::special_chebyshev_polynomial_t_outf, kNoReduced);
  structured<meta::structured_special_chebyshev_polynomial_u, op::special_chebyshev_polynomial_u>(
      library, cpu::special_chebyshev_polynomial_u_outf, kNoReduced);
  structured<meta::structured_special_chebyshev_polynomial_v, op::special_chebyshev_polynomial_v>(
      library, cpu::special_chebyshev_polynomial_v_outf, kNoReduced);
  structured<meta::structured_special_chebyshev_polynomial_w, op::special_chebyshev_polynomial_w>(
      library, cpu::special_chebyshev_polynomial_w_outf, kNoReduced);
  structured<meta::structured_special_entr, op::special_entr>(library, cpu::special_entr_outf, kNoComplex);
  structured<meta::structured_special_erfcx, op::special_erfcx>(library, cpu::special_erfcx_outf, kNoReduced);
  structured<meta::structured_special_hermite_polynomial_h, op::special_hermite_polynomial_h>(
      library, cpu::special_hermite_polynomial_h_outf, kNoReduced);
  structured<meta::structured_special_hermite_polynomial_he, op::special_hermite_polynomial_he>(
      library, cpu::special_hermite_polynomial_he_outf, kNoReduced);
  structured<meta::structured_special_i0e, op::special_i0e>(library, cpu::special_i0e_outf, kNoComplex);
  structured<meta::structured_special_i1, op::special_i1>(library, cpu::special_i1_outf, kNoComplex);
  structured<meta::structured_special_i1e, op::special_i1e>(library, cpu::special_i1e_outf, kNoComplex);
  structured<meta::structured_special_laguerre_polynomial_l, op::special_laguerre_polynomial_l>(
      library, cpu::special_laguerre_polynomial_l_outf, kNoReduced);
  structured<meta::structured_special_legendre_polynomial_p, op::special_legendre_polynomial_p>(
      library, cpu::special_legendre_polynomial_p_outf, kNoReduced);
  structured<meta::structured_special_log_ndtr, op::special_log_ndtr>(library, cpu::special_log_ndtr_outf, kNoReduced);
  structured<meta::structured_special_modified_bessel_i0, op::special_modified_bessel_i0>(
      library, cpu::special_modified_bessel_i0_outf, kNoReduced);
  structured<meta::structured_special_modified_bessel_i1, op::special_modified_bessel_i1>(
      library, cpu::special_modified_bessel_i1_outf, kNoReduced);
  structured<meta::structured_special_modified_bessel_k0, op::special_modified_bessel_k0>(
      library, cpu::special_modified_bessel_k0_outf, kNoReduced);
  structured<meta::structured_special_modified_bessel_k1, op::special_modified_bessel_k1>(
      library, cpu::special_modified_bessel_k1_outf, kNoReduced);
  structured<meta::structured_special_ndtri, op::special_ndtri>(library, cpu::special_ndtri_outf, kNoReduced);
  structured<meta::structured_special_scaled_modified_bessel_k0, op::special_scaled_modified_bessel_k0>(
      library, cpu::special_scaled_modified_bessel_k0_outf, kNoReduced);
  structured<meta::structured_special_scaled_modified_bessel_k1, op::special_scaled_modified_bessel_k1>(
      library, cpu::special_scaled_modified_bessel_k1_outf, kNoReduced);
  structured<meta::structured_special_shifted_chebyshev_polynomial_t, op::special_shifted_chebyshev_polynomial_t>(
      library, cpu::special_shifted_chebyshev_polynomial_t_outf, kNoReduced);
  structured<meta::structured_special_shifted_chebyshev_polynomial_u, op::special_shifted_chebyshev_polynomial_u>(
      library, cpu::special_shifted_chebyshev_polynomial_u_outf, kNoReduced);
  structured<meta::structured_special_shifted_chebyshev_polynomial_v, op::special_shifted_chebyshev_polynomial_v>(
      library, cpu::special_shifted_chebyshev_polynomial_v_outf, kNoReduced);
  structured<meta::structured_special_shifted_chebyshev_polynomial_w, op::special_shifted_chebyshev_polynomial_w>(
      library, cpu::special_shifted_chebyshev_polynomial_w_outf, kNoReduced);
  structured<meta::structured_special_spherical_bessel_j0, op::special_spherical_bessel_j0>(
      library, cpu::special_spherical_bessel_j0_outf, kNoReduced);
  structured<meta::structured_special_xlog1py, op::special_xlog1py>(library, cpu::special_xlog1py_outf, kNoComplex);
  structured<meta::structured_special_zeta, op::special_zeta>(library, cpu::special_zeta_outf, kNoReduced);
}

}  // namespace

}  // namespace openreg::ops
