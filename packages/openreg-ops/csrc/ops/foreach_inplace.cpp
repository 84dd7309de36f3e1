// SPDX-License-Identifier: BSD-3-Clause
// Operators on lists of tensors, in place: one launch for the whole list. Optimisers use them by default on this
// device.
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

  OPENREG_LIST(library, _foreach_abs_, _foreach_abs_);
  OPENREG_LIST(library, _foreach_acos_, _foreach_acos_);
  OPENREG_LIST(library, _foreach_add__List, _foreach_add_);
  OPENREG_LIST(library, _foreach_add__Scalar, _foreach_add_);
  OPENREG_LIST(library, _foreach_add__ScalarList, _foreach_add_);
  OPENREG_LIST(library, _foreach_add__Tensor, _foreach_add_);
  OPENREG_LIST(library, _foreach_addcdiv__Scalar, _foreach_addcdiv_);
  OPENREG_LIST(library, _foreach_addcdiv__ScalarList, _foreach_addcdiv_);
  OPENREG_LIST(library, _foreach_addcdiv__Tensor, _foreach_addcdiv_);
  OPENREG_LIST(library, _foreach_addcmul__Scalar, _foreach_addcmul_);
  OPENREG_LIST(library, _foreach_addcmul__ScalarList, _foreach_addcmul_);
  OPENREG_LIST(library, _foreach_addcmul__Tensor, _foreach_addcmul_);
  OPENREG_LIST(library, _foreach_asin_, _foreach_asin_);
  OPENREG_LIST(library, _foreach_atan_, _foreach_atan_);
  OPENREG_LIST(library, _foreach_ceil_, _foreach_ceil_);
  OPENREG_LIST(library, _foreach_clamp_max__List, _foreach_clamp_max_);
  OPENREG_LIST(library, _foreach_clamp_max__Scalar, _foreach_clamp_max_);
  OPENREG_LIST(library, _foreach_clamp_max__ScalarList, _foreach_clamp_max_);
  OPENREG_LIST(library, _foreach_clamp_min__List, _foreach_clamp_min_);
  OPENREG_LIST(library, _foreach_clamp_min__Scalar, _foreach_clamp_min_);
  OPENREG_LIST(library, _foreach_clamp_min__ScalarList, _foreach_clamp_min_);
  OPENREG_LIST(library, _foreach_copy_, _foreach_copy_);
  OPENREG_LIST(library, _foreach_cos_, _foreach_cos_);
  OPENREG_LIST(library, _foreach_cosh_, _foreach_cosh_);
  OPENREG_LIST(library, _foreach_div__List, _foreach_div_);
  OPENREG_LIST(library, _foreach_div__Scalar, _foreach_div_);
  OPENREG_LIST(library, _foreach_div__ScalarList, _foreach_div_);
  OPENREG_LIST(library, _foreach_div__Tensor, _foreach_div_);
  OPENREG_LIST(library, _foreach_erf_, _foreach_erf_);
  OPENREG_LIST(library, _foreach_erfc_, _foreach_erfc_);
  OPENREG_LIST(library, _foreach_exp_, _foreach_exp_);
  OPENREG_LIST(library, _foreach_expm1_, _foreach_expm1_);
  OPENREG_LIST(library, _foreach_floor_, _foreach_floor_);
  OPENREG_LIST(library, _foreach_frac_, _foreach_frac_);
  OPENREG_LIST(library, _foreach_lerp__List, _foreach_lerp_);
  OPENREG_LIST(library, _foreach_lerp__Scalar, _foreach_lerp_);
  OPENREG_LIST(library, _foreach_lerp__ScalarList, _foreach_lerp_);
  OPENREG_LIST(library, _foreach_lgamma_, _foreach_lgamma_);
  OPENREG_LIST(library, _foreach_log10_, _foreach_log10_);
  OPENREG_LIST(library, _foreach_log1p_, _foreach_log1p_);
  OPENREG_LIST(library, _foreach_log2_, _foreach_log2_);
  OPENREG_LIST(library, _foreach_log_, _foreach_log_);
  OPENREG_LIST(library, _foreach_maximum__List, _foreach_maximum_);
  OPENREG_LIST(library, _foreach_maximum__Scalar, _foreach_maximum_);
  OPENREG_LIST(library, _foreach_maximum__ScalarList, _foreach_maximum_);
  OPENREG_LIST(library, _foreach_minimum__List, _foreach_minimum_);
  OPENREG_LIST(library, _foreach_minimum__Scalar, _foreach_minimum_);
  OPENREG_LIST(library, _foreach_minimum__ScalarList, _foreach_minimum_);
  OPENREG_LIST(library, _foreach_mul__List, _foreach_mul_);
  OPENREG_LIST(library, _foreach_mul__Scalar, _foreach_mul_);
  OPENREG_LIST(library, _foreach_mul__ScalarList, _foreach_mul_);
  OPENREG_LIST(library, _foreach_mul__Tensor, _foreach_mul_);
  OPENREG_LIST(library, _foreach_neg_, _foreach_neg_);
  OPENREG_LIST(library, _foreach_pow__List, _foreach_pow_);
  OPENREG_LIST(library, _foreach_pow__Scalar, _foreach_pow_);
  OPENREG_LIST(library, _foreach_pow__ScalarList, _foreach_pow_);
  OPENREG_LIST(library, _foreach_reciprocal_, _foreach_reciprocal_);
  OPENREG_LIST(library, _foreach_round_, _foreach_round_);
  OPENREG_LIST(library, _foreach_rsqrt_, _foreach_rsqrt_);
  OPENREG_LIST(library, _foreach_sigmoid_, _foreach_sigmoid_);
  OPENREG_LIST(library, _foreach_sign_, _foreach_sign_);
  OPENREG_LIST(library, _foreach_sin_, _foreach_sin_);
  OPENREG_LIST(library, _foreach_sinh_, _foreach_sinh_);
  OPENREG_LIST(library, _foreach_sqrt_, _foreach_sqrt_);
  OPENREG_LIST(library, _foreach_sub__List, _foreach_sub_);
  OPENREG_LIST(library, _foreach_sub__Scalar, _foreach_sub_);
  OPENREG_LIST(library, _foreach_sub__ScalarList, _foreach_sub_);
  OPENREG_LIST(library, _foreach_tan_, _foreach_tan_);
  OPENREG_LIST(library, _foreach_tanh_, _foreach_tanh_);
  OPENREG_LIST(library, _foreach_trunc_, _foreach_trunc_);
  OPENREG_LIST(library, _foreach_zero_, _foreach_zero_);
}
