// SPDX-License-Identifier: BSD-3-Clause
// Operators on lists of tensors that give a list: one launch for the whole list.
#include "common/launch_on.h"

#include <ATen/ops/_foreach_abs_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_abs_ops.h>
#include <ATen/ops/_foreach_acos_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_acos_ops.h>
#include <ATen/ops/_foreach_add_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_asin_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_asin_ops.h>
#include <ATen/ops/_foreach_atan_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_atan_ops.h>
#include <ATen/ops/_foreach_ceil_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_ceil_ops.h>
#include <ATen/ops/_foreach_clamp_max_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_clamp_max_ops.h>
#include <ATen/ops/_foreach_clamp_min_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_clamp_min_ops.h>
#include <ATen/ops/_foreach_copy_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_copy_ops.h>
#include <ATen/ops/_foreach_cos_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_cos_ops.h>
#include <ATen/ops/_foreach_cosh_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_cosh_ops.h>
#include <ATen/ops/_foreach_div_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_erf_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_erf_ops.h>
#include <ATen/ops/_foreach_erfc_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_erfc_ops.h>
#include <ATen/ops/_foreach_exp_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_exp_ops.h>
#include <ATen/ops/_foreach_expm1_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_expm1_ops.h>
#include <ATen/ops/_foreach_floor_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_floor_ops.h>
#include <ATen/ops/_foreach_frac_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_frac_ops.h>
#include <ATen/ops/_foreach_lerp_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_lgamma_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_lgamma_ops.h>
#include <ATen/ops/_foreach_log10_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_log10_ops.h>
#include <ATen/ops/_foreach_log1p_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_log1p_ops.h>
#include <ATen/ops/_foreach_log2_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_log2_ops.h>
#include <ATen/ops/_foreach_log_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_log_ops.h>
#include <ATen/ops/_foreach_maximum_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_maximum_ops.h>
#include <ATen/ops/_foreach_minimum_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_minimum_ops.h>
#include <ATen/ops/_foreach_mm_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_mm_ops.h>
#include <ATen/ops/_foreach_mul_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_neg_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_neg_ops.h>
#include <ATen/ops/_foreach_pow_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_pow_ops.h>
#include <ATen/ops/_foreach_reciprocal_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_reciprocal_ops.h>
#include <ATen/ops/_foreach_round_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_round_ops.h>
#include <ATen/ops/_foreach_rsqrt_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_rsqrt_ops.h>
#include <ATen/ops/_foreach_sigmoid_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sigmoid_ops.h>
#include <ATen/ops/_foreach_sign_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sign_ops.h>
#include <ATen/ops/_foreach_sin_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sin_ops.h>
#include <ATen/ops/_foreach_sinh_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sinh_ops.h>
#include <ATen/ops/_foreach_sqrt_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_foreach_sub_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sub_ops.h>
#include <ATen/ops/_foreach_tan_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_tan_ops.h>
#include <ATen/ops/_foreach_tanh_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_tanh_ops.h>
#include <ATen/ops/_foreach_trunc_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_trunc_ops.h>
#include <ATen/ops/_foreach_zero_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_zero_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace at::compositeexplicitautograd;  // one loop over the list, run on the engine

  OPENREG_LIST(library, _foreach_abs, _foreach_abs);
  OPENREG_LIST(library, _foreach_acos, _foreach_acos);
  OPENREG_LIST(library, _foreach_add_List, _foreach_add);
  OPENREG_LIST(library, _foreach_add_Scalar, _foreach_add);
  OPENREG_LIST(library, _foreach_add_ScalarList, _foreach_add);
  OPENREG_LIST(library, _foreach_add_Tensor, _foreach_add);
  OPENREG_LIST(library, _foreach_addcdiv_Scalar, _foreach_addcdiv);
  OPENREG_LIST(library, _foreach_addcdiv_ScalarList, _foreach_addcdiv);
  OPENREG_LIST(library, _foreach_addcdiv_Tensor, _foreach_addcdiv);
  OPENREG_LIST(library, _foreach_addcmul_Scalar, _foreach_addcmul);
  OPENREG_LIST(library, _foreach_addcmul_ScalarList, _foreach_addcmul);
  OPENREG_LIST(library, _foreach_addcmul_Tensor, _foreach_addcmul);
  OPENREG_LIST(library, _foreach_asin, _foreach_asin);
  OPENREG_LIST(library, _foreach_atan, _foreach_atan);
  OPENREG_LIST(library, _foreach_ceil, _foreach_ceil);
  OPENREG_LIST(library, _foreach_clamp_max_List, _foreach_clamp_max);
  OPENREG_LIST(library, _foreach_clamp_max_Scalar, _foreach_clamp_max);
  OPENREG_LIST(library, _foreach_clamp_max_ScalarList, _foreach_clamp_max);
  OPENREG_LIST(library, _foreach_clamp_min_List, _foreach_clamp_min);
  OPENREG_LIST(library, _foreach_clamp_min_Scalar, _foreach_clamp_min);
  OPENREG_LIST(library, _foreach_clamp_min_ScalarList, _foreach_clamp_min);
  OPENREG_LIST(library, _foreach_copy, _foreach_copy);
  OPENREG_LIST(library, _foreach_cos, _foreach_cos);
  OPENREG_LIST(library, _foreach_cosh, _foreach_cosh);
  OPENREG_LIST(library, _foreach_div_List, _foreach_div);
  OPENREG_LIST(library, _foreach_div_Scalar, _foreach_div);
  OPENREG_LIST(library, _foreach_div_ScalarList, _foreach_div);
  OPENREG_LIST(library, _foreach_div_Tensor, _foreach_div);
  OPENREG_LIST(library, _foreach_erf, _foreach_erf);
  OPENREG_LIST(library, _foreach_erfc, _foreach_erfc);
  OPENREG_LIST(library, _foreach_exp, _foreach_exp);
  OPENREG_LIST(library, _foreach_expm1, _foreach_expm1);
  OPENREG_LIST(library, _foreach_floor, _foreach_floor);
  OPENREG_LIST(library, _foreach_frac, _foreach_frac);
  OPENREG_LIST(library, _foreach_lerp_List, _foreach_lerp);
  OPENREG_LIST(library, _foreach_lerp_Scalar, _foreach_lerp);
  OPENREG_LIST(library, _foreach_lerp_ScalarList, _foreach_lerp);
  OPENREG_LIST(library, _foreach_lgamma, _foreach_lgamma);
  OPENREG_LIST(library, _foreach_log, _foreach_log);
  OPENREG_LIST(library, _foreach_log10, _foreach_log10);
  OPENREG_LIST(library, _foreach_log1p, _foreach_log1p);
  OPENREG_LIST(library, _foreach_log2, _foreach_log2);
  OPENREG_LIST(library, _foreach_maximum_List, _foreach_maximum);
  OPENREG_LIST(library, _foreach_maximum_Scalar, _foreach_maximum);
  OPENREG_LIST(library, _foreach_maximum_ScalarList, _foreach_maximum);
  OPENREG_LIST(library, _foreach_minimum_List, _foreach_minimum);
  OPENREG_LIST(library, _foreach_minimum_Scalar, _foreach_minimum);
  OPENREG_LIST(library, _foreach_minimum_ScalarList, _foreach_minimum);
  OPENREG_LIST(library, _foreach_mm, _foreach_mm);
  OPENREG_LIST(library, _foreach_mul_List, _foreach_mul);
  OPENREG_LIST(library, _foreach_mul_Scalar, _foreach_mul);
  OPENREG_LIST(library, _foreach_mul_ScalarList, _foreach_mul);
  OPENREG_LIST(library, _foreach_mul_Tensor, _foreach_mul);
  OPENREG_LIST(library, _foreach_neg, _foreach_neg);
  OPENREG_LIST(library, _foreach_pow_List, _foreach_pow);
  OPENREG_LIST(library, _foreach_pow_Scalar, _foreach_pow);
  OPENREG_LIST(library, _foreach_pow_ScalarList, _foreach_pow);
  OPENREG_LIST(library, _foreach_reciprocal, _foreach_reciprocal);
  OPENREG_LIST(library, _foreach_round, _foreach_round);
  OPENREG_LIST(library, _foreach_rsqrt, _foreach_rsqrt);
  OPENREG_LIST(library, _foreach_sigmoid, _foreach_sigmoid);
  OPENREG_LIST(library, _foreach_sign, _foreach_sign);
  OPENREG_LIST(library, _foreach_sin, _foreach_sin);
  OPENREG_LIST(library, _foreach_sinh, _foreach_sinh);
  OPENREG_LIST(library, _foreach_sqrt, _foreach_sqrt);
  OPENREG_LIST(library, _foreach_sub_List, _foreach_sub);
  OPENREG_LIST(library, _foreach_sub_Scalar, _foreach_sub);
  OPENREG_LIST(library, _foreach_sub_ScalarList, _foreach_sub);
  OPENREG_LIST(library, _foreach_tan, _foreach_tan);
  OPENREG_LIST(library, _foreach_tanh, _foreach_tanh);
  OPENREG_LIST(library, _foreach_trunc, _foreach_trunc);
  OPENREG_LIST(library, _foreach_zero, _foreach_zero);
}
