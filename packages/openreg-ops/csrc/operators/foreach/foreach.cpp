// SPDX-License-Identifier: BSD-3-Clause
// Operators on lists of tensors, which return a list or work in place, with one launch for the whole list. Optimizers
// call them by default on this device.
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using namespace at::compositeexplicitautograd;  // functions with one loop over the list, run on the engine

// Throws c10::Error unless a number that one launch adds to a list is on the list's device. CUDA accepts a number on
// the host only for products and quotients (ATen/native/cuda/ForeachBinaryOpScalarTensor.cu).
void check_added_number(at::TensorList self, const at::Tensor& number, const at::Scalar& /*alpha*/) {
  TORCH_CHECK(!is_uniform(self) || number.scalar_type() != self[0].scalar_type() || number.device() == self[0].device(),
              "aten::_foreach_add: scalar tensor expected to be on ", self[0].device(), " but is on ", number.device(),
              "; move it there, or pass a number");
}

// Throws c10::Error, in PyTorch's words, unless the numbers for a list are a vector. PyTorch reads them on the host,
// and would reject others only in the kernel.
void check_packed_numbers(at::TensorList /*self*/, at::TensorList /*tensor1*/, at::TensorList /*tensor2*/,
                          const at::Tensor& numbers) {
  TORCH_CHECK(numbers.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", numbers.dim(),
              " instead.");
}

// Throws c10::Error, in the words of mm, for a pair of one shape that has no product. mm itself checks all other pairs,
// because one launch processes only pairs of one shape.
void check_products(at::TensorList self, at::TensorList mat2) {
  for (size_t i = 0; i < std::min(self.size(), mat2.size()); ++i) {
    if (self[i].sizes() == mat2[i].sizes()) {
      TORCH_CHECK(self[i].dim() == 2, "self must be a matrix");
      TORCH_CHECK(self[i].size(0) == self[i].size(1), "mat1 and mat2 shapes cannot be multiplied (", self[i].size(0),
                  "x", self[i].size(1), " and ", mat2[i].size(0), "x", mat2[i].size(1), ")");
    }
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  foreach_ops<op::_foreach_abs, op::_foreach_abs_>(library, _foreach_abs, _foreach_abs_);
  foreach_ops<op::_foreach_acos, op::_foreach_acos_>(library, _foreach_acos, _foreach_acos_);
  foreach_ops<op::_foreach_add_List, op::_foreach_add__List>(library, _foreach_add, _foreach_add_);
  foreach_ops<op::_foreach_add_Scalar, op::_foreach_add__Scalar>(library, _foreach_add, _foreach_add_);
  foreach_ops<op::_foreach_add_ScalarList, op::_foreach_add__ScalarList>(library, _foreach_add, _foreach_add_);
  foreach_ops<check_added_number, op::_foreach_add_Tensor, op::_foreach_add__Tensor>(library, _foreach_add,
                                                                                     _foreach_add_);
  foreach_ops<op::_foreach_addcdiv_Scalar, op::_foreach_addcdiv__Scalar>(library, _foreach_addcdiv, _foreach_addcdiv_);
  foreach_ops<op::_foreach_addcdiv_ScalarList, op::_foreach_addcdiv__ScalarList>(library, _foreach_addcdiv,
                                                                                 _foreach_addcdiv_);
  foreach_ops<check_packed_numbers, op::_foreach_addcdiv_Tensor, op::_foreach_addcdiv__Tensor>(
      library, _foreach_addcdiv, _foreach_addcdiv_);
  foreach_ops<op::_foreach_addcmul_Scalar, op::_foreach_addcmul__Scalar>(library, _foreach_addcmul, _foreach_addcmul_);
  foreach_ops<op::_foreach_addcmul_ScalarList, op::_foreach_addcmul__ScalarList>(library, _foreach_addcmul,
                                                                                 _foreach_addcmul_);
  foreach_ops<check_packed_numbers, op::_foreach_addcmul_Tensor, op::_foreach_addcmul__Tensor>(
      library, _foreach_addcmul, _foreach_addcmul_);
  foreach_ops<op::_foreach_asin, op::_foreach_asin_>(library, _foreach_asin, _foreach_asin_);
  foreach_ops<op::_foreach_atan, op::_foreach_atan_>(library, _foreach_atan, _foreach_atan_);
  foreach_ops<op::_foreach_ceil, op::_foreach_ceil_>(library, _foreach_ceil, _foreach_ceil_);
  foreach_ops<op::_foreach_clamp_max_List, op::_foreach_clamp_max__List>(library, _foreach_clamp_max,
                                                                         _foreach_clamp_max_);
  foreach_ops<op::_foreach_clamp_max_Scalar, op::_foreach_clamp_max__Scalar>(library, _foreach_clamp_max,
                                                                             _foreach_clamp_max_);
  foreach_ops<op::_foreach_clamp_max_ScalarList, op::_foreach_clamp_max__ScalarList>(library, _foreach_clamp_max,
                                                                                     _foreach_clamp_max_);
  foreach_ops<op::_foreach_clamp_min_List, op::_foreach_clamp_min__List>(library, _foreach_clamp_min,
                                                                         _foreach_clamp_min_);
  foreach_ops<op::_foreach_clamp_min_Scalar, op::_foreach_clamp_min__Scalar>(library, _foreach_clamp_min,
                                                                             _foreach_clamp_min_);
  foreach_ops<op::_foreach_clamp_min_ScalarList, op::_foreach_clamp_min__ScalarList>(library, _foreach_clamp_min,
                                                                                     _foreach_clamp_min_);
  foreach_ops<op::_foreach_copy, op::_foreach_copy_>(library, _foreach_copy, _foreach_copy_);
  foreach_ops<op::_foreach_cos, op::_foreach_cos_>(library, _foreach_cos, _foreach_cos_);
  foreach_ops<op::_foreach_cosh, op::_foreach_cosh_>(library, _foreach_cosh, _foreach_cosh_);
  foreach_ops<op::_foreach_div_List, op::_foreach_div__List>(library, _foreach_div, _foreach_div_);
  foreach_ops<op::_foreach_div_Scalar, op::_foreach_div__Scalar>(library, _foreach_div, _foreach_div_);
  foreach_ops<op::_foreach_div_ScalarList, op::_foreach_div__ScalarList>(library, _foreach_div, _foreach_div_);
  foreach_ops<op::_foreach_div_Tensor, op::_foreach_div__Tensor>(library, _foreach_div, _foreach_div_);
  foreach_ops<op::_foreach_erf, op::_foreach_erf_>(library, _foreach_erf, _foreach_erf_);
  foreach_ops<op::_foreach_erfc, op::_foreach_erfc_>(library, _foreach_erfc, _foreach_erfc_);
  foreach_ops<op::_foreach_exp, op::_foreach_exp_>(library, _foreach_exp, _foreach_exp_);
  foreach_ops<op::_foreach_expm1, op::_foreach_expm1_>(library, _foreach_expm1, _foreach_expm1_);
  foreach_ops<op::_foreach_floor, op::_foreach_floor_>(library, _foreach_floor, _foreach_floor_);
  foreach_ops<op::_foreach_frac, op::_foreach_frac_>(library, _foreach_frac, _foreach_frac_);
  foreach_ops<op::_foreach_lerp_List, op::_foreach_lerp__List>(library, _foreach_lerp, _foreach_lerp_);
  foreach_ops<op::_foreach_lerp_Scalar, op::_foreach_lerp__Scalar>(library, _foreach_lerp, _foreach_lerp_);
  foreach_ops<op::_foreach_lerp_ScalarList, op::_foreach_lerp__ScalarList>(library, _foreach_lerp, _foreach_lerp_);
  foreach_ops<op::_foreach_lgamma, op::_foreach_lgamma_>(library, _foreach_lgamma, _foreach_lgamma_);
  foreach_ops<op::_foreach_log, op::_foreach_log_>(library, _foreach_log, _foreach_log_);
  foreach_ops<op::_foreach_log10, op::_foreach_log10_>(library, _foreach_log10, _foreach_log10_);
  foreach_ops<op::_foreach_log1p, op::_foreach_log1p_>(library, _foreach_log1p, _foreach_log1p_);
  foreach_ops<op::_foreach_log2, op::_foreach_log2_>(library, _foreach_log2, _foreach_log2_);
  foreach_ops<op::_foreach_maximum_List, op::_foreach_maximum__List>(library, _foreach_maximum, _foreach_maximum_);
  foreach_ops<op::_foreach_maximum_Scalar, op::_foreach_maximum__Scalar>(library, _foreach_maximum, _foreach_maximum_);
  foreach_ops<op::_foreach_maximum_ScalarList, op::_foreach_maximum__ScalarList>(library, _foreach_maximum,
                                                                                 _foreach_maximum_);
  foreach_ops<op::_foreach_minimum_List, op::_foreach_minimum__List>(library, _foreach_minimum, _foreach_minimum_);
  foreach_ops<op::_foreach_minimum_Scalar, op::_foreach_minimum__Scalar>(library, _foreach_minimum, _foreach_minimum_);
  foreach_ops<op::_foreach_minimum_ScalarList, op::_foreach_minimum__ScalarList>(library, _foreach_minimum,
                                                                                 _foreach_minimum_);
  foreach_ops<check_products, op::_foreach_mm>(library, _foreach_mm);
  foreach_ops<op::_foreach_mul_List, op::_foreach_mul__List>(library, _foreach_mul, _foreach_mul_);
  foreach_ops<op::_foreach_mul_Scalar, op::_foreach_mul__Scalar>(library, _foreach_mul, _foreach_mul_);
  foreach_ops<op::_foreach_mul_ScalarList, op::_foreach_mul__ScalarList>(library, _foreach_mul, _foreach_mul_);
  foreach_ops<op::_foreach_mul_Tensor, op::_foreach_mul__Tensor>(library, _foreach_mul, _foreach_mul_);
  foreach_ops<op::_foreach_neg, op::_foreach_neg_>(library, _foreach_neg, _foreach_neg_);
  foreach_ops<op::_foreach_pow_List, op::_foreach_pow__List>(library, _foreach_pow, _foreach_pow_);
  foreach_ops<op::_foreach_pow_Scalar, op::_foreach_pow__Scalar>(library, _foreach_pow, _foreach_pow_);
  foreach_ops<op::_foreach_pow_ScalarList, op::_foreach_pow__ScalarList>(library, _foreach_pow, _foreach_pow_);
  foreach_ops<op::_foreach_reciprocal, op::_foreach_reciprocal_>(library, _foreach_reciprocal, _foreach_reciprocal_);
  foreach_ops<op::_foreach_round, op::_foreach_round_>(library, _foreach_round, _foreach_round_);
  foreach_ops<op::_foreach_rsqrt, op::_foreach_rsqrt_>(library, _foreach_rsqrt, _foreach_rsqrt_);
  foreach_ops<op::_foreach_sigmoid, op::_foreach_sigmoid_>(library, _foreach_sigmoid, _foreach_sigmoid_);
  foreach_ops<op::_foreach_sign, op::_foreach_sign_>(library, _foreach_sign, _foreach_sign_);
  foreach_ops<op::_foreach_sin, op::_foreach_sin_>(library, _foreach_sin, _foreach_sin_);
  foreach_ops<op::_foreach_sinh, op::_foreach_sinh_>(library, _foreach_sinh, _foreach_sinh_);
  foreach_ops<op::_foreach_sqrt, op::_foreach_sqrt_>(library, _foreach_sqrt, _foreach_sqrt_);
  foreach_ops<op::_foreach_sub_List, op::_foreach_sub__List>(library, _foreach_sub, _foreach_sub_);
  foreach_ops<op::_foreach_sub_Scalar, op::_foreach_sub__Scalar>(library, _foreach_sub, _foreach_sub_);
  foreach_ops<op::_foreach_sub_ScalarList, op::_foreach_sub__ScalarList>(library, _foreach_sub, _foreach_sub_);
  foreach_ops<op::_foreach_tan, op::_foreach_tan_>(library, _foreach_tan, _foreach_tan_);
  foreach_ops<op::_foreach_tanh, op::_foreach_tanh_>(library, _foreach_tanh, _foreach_tanh_);
  foreach_ops<op::_foreach_trunc, op::_foreach_trunc_>(library, _foreach_trunc, _foreach_trunc_);
  foreach_ops<op::_foreach_zero, op::_foreach_zero_>(library, _foreach_zero, _foreach_zero_);
}

}  // namespace

}  // namespace openreg::ops
