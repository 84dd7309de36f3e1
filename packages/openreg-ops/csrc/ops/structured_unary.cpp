// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: functions of one operand, element by element.
#include "common/structured.h"

#include <ATen/ops/_addmm_activation_cpu_dispatch.h>
#include <ATen/ops/_addmm_activation_meta.h>
#include <ATen/ops/_addmm_activation_ops.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr_cpu_dispatch.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr_meta.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr_ops.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo_cpu_dispatch.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo_meta.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo_ops.h>
#include <ATen/ops/acos_cpu_dispatch.h>
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/acosh_cpu_dispatch.h>
#include <ATen/ops/acosh_meta.h>
#include <ATen/ops/acosh_ops.h>
#include <ATen/ops/asin_cpu_dispatch.h>
#include <ATen/ops/asin_meta.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/asinh_cpu_dispatch.h>
#include <ATen/ops/asinh_meta.h>
#include <ATen/ops/asinh_ops.h>
#include <ATen/ops/atan_cpu_dispatch.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/atanh_cpu_dispatch.h>
#include <ATen/ops/atanh_meta.h>
#include <ATen/ops/atanh_ops.h>
#include <ATen/ops/ceil_cpu_dispatch.h>
#include <ATen/ops/ceil_meta.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/cos_cpu_dispatch.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/cosh_cpu_dispatch.h>
#include <ATen/ops/cosh_meta.h>
#include <ATen/ops/cosh_ops.h>
#include <ATen/ops/digamma_cpu_dispatch.h>
#include <ATen/ops/digamma_meta.h>
#include <ATen/ops/digamma_ops.h>
#include <ATen/ops/erf_cpu_dispatch.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/erfc_cpu_dispatch.h>
#include <ATen/ops/erfc_meta.h>
#include <ATen/ops/erfc_ops.h>
#include <ATen/ops/erfinv_cpu_dispatch.h>
#include <ATen/ops/erfinv_meta.h>
#include <ATen/ops/erfinv_ops.h>
#include <ATen/ops/exp2_cpu_dispatch.h>
#include <ATen/ops/exp2_meta.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_cpu_dispatch.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_cpu_dispatch.h>
#include <ATen/ops/expm1_meta.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/floor_cpu_dispatch.h>
#include <ATen/ops/floor_meta.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/frac_cpu_dispatch.h>
#include <ATen/ops/frac_meta.h>
#include <ATen/ops/frac_ops.h>
#include <ATen/ops/i0_cpu_dispatch.h>
#include <ATen/ops/i0_meta.h>
#include <ATen/ops/i0_ops.h>
#include <ATen/ops/lgamma_cpu_dispatch.h>
#include <ATen/ops/lgamma_meta.h>
#include <ATen/ops/lgamma_ops.h>
#include <ATen/ops/log10_cpu_dispatch.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/log1p_cpu_dispatch.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log2_cpu_dispatch.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log_cpu_dispatch.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/polygamma_cpu_dispatch.h>
#include <ATen/ops/polygamma_meta.h>
#include <ATen/ops/polygamma_ops.h>
#include <ATen/ops/reciprocal_cpu_dispatch.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/round_cpu_dispatch.h>
#include <ATen/ops/round_meta.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsqrt_cpu_dispatch.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_cpu_dispatch.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sign_cpu_dispatch.h>
#include <ATen/ops/sign_meta.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/sin_cpu_dispatch.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sinc_cpu_dispatch.h>
#include <ATen/ops/sinc_meta.h>
#include <ATen/ops/sinc_ops.h>
#include <ATen/ops/sinh_cpu_dispatch.h>
#include <ATen/ops/sinh_meta.h>
#include <ATen/ops/sinh_ops.h>
#include <ATen/ops/sqrt_cpu_dispatch.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tan_cpu_dispatch.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tan_ops.h>
#include <ATen/ops/tanh_cpu_dispatch.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/trunc_cpu_dispatch.h>
#include <ATen/ops/trunc_meta.h>
#include <ATen/ops/trunc_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED(library, _addmm_activation, _addmm_activation_out, _addmm_activation)
  OPENREG_STRUCTURED(library, _convert_indices_from_coo_to_csr, _convert_indices_from_coo_to_csr_out,
                     _convert_indices_from_coo_to_csr)
  OPENREG_STRUCTURED(library, _convert_indices_from_csr_to_coo, _convert_indices_from_csr_to_coo_out,
                     _convert_indices_from_csr_to_coo)
  OPENREG_STRUCTURED_INPLACE(library, acos, acos_out, acos_, acos)
  OPENREG_STRUCTURED_INPLACE(library, acosh, acosh_out, acosh_, acosh)
  OPENREG_STRUCTURED_INPLACE(library, asin, asin_out, asin_, asin)
  OPENREG_STRUCTURED_INPLACE(library, asinh, asinh_out, asinh_, asinh)
  OPENREG_STRUCTURED_INPLACE(library, atan, atan_out, atan_, atan)
  OPENREG_STRUCTURED_INPLACE(library, atanh, atanh_out, atanh_, atanh)
  OPENREG_STRUCTURED_INPLACE(library, ceil, ceil_out, ceil_, ceil)
  OPENREG_STRUCTURED_INPLACE(library, cos, cos_out, cos_, cos)
  OPENREG_STRUCTURED_INPLACE(library, cosh, cosh_out, cosh_, cosh)
  OPENREG_STRUCTURED_INPLACE(library, digamma, digamma_out, digamma_, digamma)
  OPENREG_STRUCTURED_INPLACE(library, erf, erf_out, erf_, erf)
  OPENREG_STRUCTURED_INPLACE(library, erfc, erfc_out, erfc_, erfc)
  OPENREG_STRUCTURED_INPLACE(library, erfinv, erfinv_out, erfinv_, erfinv)
  OPENREG_STRUCTURED_INPLACE(library, exp, exp_out, exp_, exp)
  OPENREG_STRUCTURED_INPLACE(library, exp2, exp2_out, exp2_, exp2)
  OPENREG_STRUCTURED_INPLACE(library, expm1, expm1_out, expm1_, expm1)
  OPENREG_STRUCTURED_INPLACE(library, floor, floor_out, floor_, floor)
  OPENREG_STRUCTURED_INPLACE(library, frac, frac_out, frac_, frac)
  OPENREG_STRUCTURED_INPLACE(library, i0, i0_out, i0_, i0)
  OPENREG_STRUCTURED_INPLACE(library, lgamma, lgamma_out, lgamma_, lgamma)
  OPENREG_STRUCTURED_INPLACE(library, log, log_out, log_, log)
  OPENREG_STRUCTURED_INPLACE(library, log10, log10_out, log10_, log10)
  OPENREG_STRUCTURED_INPLACE(library, log1p, log1p_out, log1p_, log1p)
  OPENREG_STRUCTURED_INPLACE(library, log2, log2_out, log2_, log2)
  OPENREG_STRUCTURED_INPLACE(library, neg, neg_out, neg_, neg)
  OPENREG_STRUCTURED(library, polygamma, polygamma_out, polygamma)
  OPENREG_STRUCTURED_INPLACE(library, reciprocal, reciprocal_out, reciprocal_, reciprocal)
  OPENREG_STRUCTURED_INPLACE(library, round, round_out, round_, round)
  OPENREG_STRUCTURED_INPLACE(library, round_decimals, round_decimals_out, round__decimals, round)
  OPENREG_STRUCTURED_INPLACE(library, rsqrt, rsqrt_out, rsqrt_, rsqrt)
  OPENREG_STRUCTURED_INPLACE(library, sgn, sgn_out, sgn_, sgn)
  OPENREG_STRUCTURED_INPLACE(library, sigmoid, sigmoid_out, sigmoid_, sigmoid)
  OPENREG_STRUCTURED_INPLACE(library, sign, sign_out, sign_, sign)
  OPENREG_STRUCTURED_INPLACE(library, sin, sin_out, sin_, sin)
  OPENREG_STRUCTURED_INPLACE(library, sinc, sinc_out, sinc_, sinc)
  OPENREG_STRUCTURED_INPLACE(library, sinh, sinh_out, sinh_, sinh)
  OPENREG_STRUCTURED_INPLACE(library, sqrt, sqrt_out, sqrt_, sqrt)
  OPENREG_STRUCTURED_INPLACE(library, tan, tan_out, tan_, tan)
  OPENREG_STRUCTURED_INPLACE(library, tanh, tanh_out, tanh_, tanh)
  OPENREG_STRUCTURED_INPLACE(library, trunc, trunc_out, trunc_, trunc)
}
