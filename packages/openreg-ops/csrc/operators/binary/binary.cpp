// SPDX-License-Identifier: BSD-3-Clause
// Elementwise arithmetic on two or more operands.
#include <ATen/native/BinaryOps.h>
#include <ATen/ops/div.h>
#include <ATen/ops/remainder_native.h>
#include <ATen/ops/rsub_native.h>

#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// A meta function for complex() and polar(). The operands are real and imaginary parts, or absolute values and angles.
OutputSpec meta_complex(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  const auto has_parts = [](c10::ScalarType dtype) {
    return dtype == at::kHalf || dtype == at::kFloat || dtype == at::kDouble;
  };
  TORCH_CHECK(has_parts(a.scalar_type()) && has_parts(b.scalar_type()),
              "Expected both inputs to be Half, Float or Double tensors but got ", a.scalar_type(), " and ",
              b.scalar_type());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of scalar type ", a.scalar_type(),
              " but got scalar type ", b.scalar_type(), " for second argument");
  const c10::ScalarType dtype = c10::toComplexType(a.scalar_type());
  TORCH_CHECK(out.scalar_type() == dtype, "Expected object of scalar type ", dtype, " but got scalar type ",
              out.scalar_type(), " for argument 'out'");
  return by_iterator(a, b, out);
}

// Throws c10::Error for boolean operands. PyTorch's meta function checks this, too, but is skipped for a floating-point
// tensor and a number (ElementwiseOperands), which may be a boolean.
void check_sub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& /*alpha*/) {
  at::native::sub_check(self, other);
}

// Throws c10::Error if the output overlaps itself or only a part of the exponents. The kernel may overwrite all of
// them.
void check_power(const at::Scalar& /*self*/, const at::Tensor& exponent, at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, exponent);
}

at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) {
  return at::div(self, other, "floor");
}
at::Tensor& floor_divide_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return at::div_out(out, self, other, "floor");
}
at::Tensor& floor_divide_(at::Tensor& self, const at::Tensor& other) {
  return self.div_(other, "floor");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kFloatingOrComplex{.refused = kBoolean | kIntegers};
  constexpr KernelTraits kIntegral{.refused = kBoolean | kFloating | kComplex};
  structured<meta::structured_add_Tensor, op::add_Tensor, op::add__Tensor>(library, cpu::add_outf, kElementwise);
  structured<meta::structured_addcdiv, op::addcdiv, op::addcdiv_>(library, cpu::addcdiv_outf);
  structured<meta::structured_addcmul, op::addcmul, op::addcmul_>(library, cpu::addcmul_outf, {.refused = kBoolean});
  unstructured<meta_complex, op::complex_out>(library, cpu::complex_outf);
  structured<meta::structured_atan2, op::atan2, op::atan2_>(library, cpu::atan2_outf, kNoComplex);
  structured<meta::structured_copysign_Tensor, op::copysign_Tensor, op::copysign__Tensor>(library, cpu::copysign_outf,
                                                                                          kNoComplex);
  structured<meta::structured_div_Tensor, op::div_Tensor, op::div__Tensor>(library, cpu::div_outf, kElementwise);
  structured<meta::structured_div_Tensor_mode, op::div_Tensor_mode, op::div__Tensor_mode>(
      library, cpu::div_outf,
      {.data_check = DataCheck::kZeroDivisor,
       .modes = {{{"floor", kBoolean | kComplex}, {"trunc", kBoolean | kComplex}}}});
  function<op::floor_divide>(library, floor_divide);
  function<op::floor_divide_out>(library, floor_divide_out);
  function<op::floor_divide__Tensor>(library, floor_divide_);
  structured<meta::structured_fmax, op::fmax>(library, cpu::fmax_outf);
  structured<meta::structured_fmin, op::fmin>(library, cpu::fmin_outf);
  structured<meta::structured_fmod_Tensor, op::fmod_Tensor, op::fmod__Tensor>(
      library, cpu::fmod_outf, {.refused = kBoolean | kComplex, .data_check = DataCheck::kZeroDivisor});
  structured<meta::structured_gcd, op::gcd, op::gcd_>(library, cpu::gcd_outf, kIntegral);
  structured<meta::structured_heaviside, op::heaviside, op::heaviside_>(library, cpu::heaviside_outf);
  structured<meta::structured_igamma, op::igamma, op::igamma_>(library, cpu::igamma_outf, kFloats);
  structured<meta::structured_igammac, op::igammac, op::igammac_>(library, cpu::igammac_outf, kFloats);
  structured<meta::structured_lcm, op::lcm, op::lcm_>(library, cpu::lcm_outf, kIntegral);
  structured<meta::structured_lerp_Scalar, op::lerp_Scalar, op::lerp__Scalar>(library, cpu::lerp_outf,
                                                                              kFloatingOrComplex);
  structured<meta::structured_lerp_Tensor, op::lerp_Tensor, op::lerp__Tensor>(library, cpu::lerp_outf,
                                                                              kFloatingOrComplex);
  structured<meta::structured_logaddexp, op::logaddexp>(library, cpu::logaddexp_outf, kFloatingOrComplex);
  structured<meta::structured_logaddexp2, op::logaddexp2>(library, cpu::logaddexp2_outf, kFloats);
  structured<meta::structured_maximum, op::maximum>(library, cpu::maximum_outf);
  structured<meta::structured_minimum, op::minimum>(library, cpu::minimum_outf);
  structured<meta::structured_mul_Tensor, op::mul_Tensor, op::mul__Tensor>(library, cpu::mul_outf, kElementwise);
  structured<meta::structured_nextafter, op::nextafter, op::nextafter_>(library, cpu::nextafter_outf, kFloats);
  // Some releases of PyTorch have no kernel for half.
  unstructured<meta_complex, op::polar_out>(library, cpu::polar_outf,
                                            {.refused = OPENREG_TORCH_HAS_HALF_POLAR ? 0 : dtype_set(at::kHalf)});
  structured<meta::structured_pow_Scalar, op::pow_Scalar>(library, cpu::pow_outf, {}, {.check_outputs = check_power});
  structured<meta::structured_pow_Tensor_Scalar, op::pow_Tensor_Scalar, op::pow__Scalar>(library, cpu::pow_outf,
                                                                                         kElementwise);
  structured<meta::structured_pow_Tensor_Tensor, op::pow_Tensor_Tensor, op::pow__Tensor>(library, cpu::pow_outf,
                                                                                         {.refused = kBoolean});
  function<op::remainder_Scalar_Tensor>(library, at::native::remainder);
  structured<meta::structured_remainder_Tensor, op::remainder_Tensor, op::remainder__Tensor>(
      library, cpu::remainder_outf, {.refused = kBoolean | kComplex, .data_check = DataCheck::kZeroDivisor});
  function<op::rsub_Tensor>(library, at::native::rsub);
  structured<meta::structured_sub_Tensor, op::sub_Tensor, op::sub__Tensor>(library, cpu::sub_outf, kElementwise,
                                                                           {.check = check_sub});
  structured<meta::structured_xlogy_Tensor, op::xlogy_Tensor, op::xlogy__Tensor>(library, cpu::xlogy_outf, kNoComplex);
}

}  // namespace

}  // namespace openreg::ops
