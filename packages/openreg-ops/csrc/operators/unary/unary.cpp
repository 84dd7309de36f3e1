// SPDX-License-Identifier: BSD-3-Clause
// Elementwise functions of one operand.
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns integers in the default dtype, because the kernels would read the default dtype only when they run.
at::Tensor to_default_dtype(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), true) ? self.to(c10::get_default_dtype_as_scalartype()) : self;
}

// The output is contiguous for complex numbers, because the CPU's kernel makes a complex result first, and copies a
// part of it.
OutputSpec meta_angle(const at::Tensor& self) {
  const c10::ScalarType real = c10::toRealValueType(self.scalar_type());
  return (self.is_complex() ? output_of(self.sizes(), real) : output_like(self))
      .allowing({.casts = true, .elementwise = true});
}
const auto kAngle = unstructured_operator<meta_angle, op::angle>(cpu::angle_outf);

constexpr auto meta_conj_physical = [](const at::Tensor& self, const at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "Found dtype ", out.scalar_type(), " but expected ",
              self.scalar_type());
  return by_iterator(self, out);
};
const auto kConjPhysical =
    unstructured_overload<meta_conj_physical, op::conj_physical_out>(cpu::conj_physical_outf, kChecked);

at::Tensor& conj_physical_(at::Tensor& self) {
  return self.is_complex() ? kConjPhysical(self, self) : self;
}

std::array<OutputSpec, 2> meta_frexp(const at::Tensor& self) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "torch.frexp() only supports floating-point dtypes");
  return {output_like(self).allowing({.elementwise = true}), output_like(self, at::kInt)};
}

OutputSpec meta_logit(const at::Tensor& self, std::optional<double> /*eps*/) {
  require_dtype(!self.is_complex(), "logit_cpu", self.scalar_type());
  const c10::ScalarType dtype =
      at::isFloatingType(self.scalar_type()) ? self.scalar_type() : c10::get_default_dtype_as_scalartype();
  return output_like(self, dtype).allowing({.casts = true, .elementwise = true});
}

const auto kLogit = unstructured_operator<meta_logit, op::logit>(cpu::logit_outf);

void check_logit(const at::Tensor& self, std::optional<double> eps) {
  const c10::ScalarType result = meta_logit(self, eps).dtype;
  TORCH_CHECK(c10::canCast(result, self.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", self.scalar_type());
}

constexpr auto meta_nan_to_num = [](const at::Tensor& self, const auto&... rest) {
  const at::Tensor& out = std::get<sizeof...(rest) - 1>(std::tie(rest...));
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "nan_to_num: dtype of out: ", out.scalar_type(),
              " should be same as input: ", self.scalar_type());
  return by_iterator(self, out);
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_acos, op::acos, op::acos_>(library, cpu::acos_outf);
  structured<meta::structured_acosh, op::acosh, op::acosh_>(library, cpu::acosh_outf);
  function<op::angle>(library, [](const at::Tensor& self) { return kAngle.functional(to_default_dtype(self)); });
  function<op::angle_out>(library, [](const at::Tensor& self, at::Tensor& out) -> at::Tensor& {
    return kAngle.out(to_default_dtype(self), out);
  });
  structured<meta::structured_asin, op::asin, op::asin_>(library, cpu::asin_outf);
  structured<meta::structured_asinh, op::asinh, op::asinh_>(library, cpu::asinh_outf);
  structured<meta::structured_atan, op::atan, op::atan_>(library, cpu::atan_outf);
  structured<meta::structured_atanh, op::atanh, op::atanh_>(library, cpu::atanh_outf);
  structured<meta::structured_bitwise_not, op::bitwise_not, op::bitwise_not_>(library, cpu::bitwise_not_outf,
                                                                              {.refused = kFloating | kComplex});
  structured<meta::structured_ceil, op::ceil, op::ceil_>(library, cpu::ceil_outf, kRealNumbers);
  function<op::conj_physical_>(library, conj_physical_);
  function<op::conj_physical_out>(
      library, [](auto... args) -> at::Tensor& { return kConjPhysical(args...); }, kChecked);
  structured<meta::structured_cos, op::cos, op::cos_>(library, cpu::cos_outf, kElementwise);
  structured<meta::structured_cosh, op::cosh, op::cosh_>(library, cpu::cosh_outf);
  structured<meta::structured_digamma, op::digamma, op::digamma_>(library, cpu::digamma_outf, kNoComplex);
  structured<meta::structured_erf, op::erf, op::erf_>(library, cpu::erf_outf, kNoComplex);
  structured<meta::structured_erfc, op::erfc, op::erfc_>(library, cpu::erfc_outf, kNoComplex);
  structured<meta::structured_erfinv, op::erfinv, op::erfinv_>(library, cpu::erfinv_outf, kNoComplex);
  structured<meta::structured_exp, op::exp, op::exp_>(library, cpu::exp_outf, kElementwise);
  structured<meta::structured_exp2, op::exp2, op::exp2_>(library, cpu::exp2_outf);
  structured<meta::structured_expm1, op::expm1, op::expm1_>(library, cpu::expm1_outf);
  structured<meta::structured_floor, op::floor, op::floor_>(library, cpu::floor_outf, kRealNumbers);
  structured<meta::structured_frac, op::frac, op::frac_>(library, cpu::frac_outf, kFloats);
  unstructured<meta_frexp, op::frexp_Tensor>(library, cpu::frexp_outf);
  structured<meta::structured_i0, op::i0, op::i0_>(library, cpu::i0_outf, kNoComplex);
  structured<meta::structured_isneginf, op::isneginf>(library, cpu::isneginf_outf);
  structured<meta::structured_isposinf, op::isposinf>(library, cpu::isposinf_outf);
  structured<meta::structured_lgamma, op::lgamma, op::lgamma_>(library, cpu::lgamma_outf, kNoComplex);
  structured<meta::structured_log, op::log, op::log_>(library, cpu::log_outf, kElementwise);
  structured<meta::structured_log10, op::log10, op::log10_>(library, cpu::log10_outf);
  structured<meta::structured_log1p, op::log1p, op::log1p_>(library, cpu::log1p_outf);
  structured<meta::structured_log2, op::log2, op::log2_>(library, cpu::log2_outf);
  unstructured<by_iterator, op::logical_not_out>(library, cpu::logical_not_outf, kChecked);
  function<op::logit>(library, [](const at::Tensor& self, std::optional<double> eps) {
    return kLogit.functional(to_default_dtype(self), eps);
  });
  function<op::logit_out>(library,
                          [](const at::Tensor& self, std::optional<double> eps, at::Tensor& out) -> at::Tensor& {
                            return kLogit.out(to_default_dtype(self), eps, out);
                          });
  unstructured<check_logit, op::logit_>(library, cpu::logit_);
  structured<meta::structured_logit_backward, op::logit_backward>(library, cpu::logit_backward_outf, kFloats);
  unstructured<meta_nan_to_num, op::nan_to_num_out>(library, cpu::nan_to_num_outf, kChecked);
  structured<meta::structured_neg, op::neg, op::neg_>(library, cpu::neg_outf, kElementwise);
  structured<meta::structured_polygamma, op::polygamma>(library, cpu::polygamma_outf, kNoComplex);
  structured<meta::structured_reciprocal, op::reciprocal, op::reciprocal_>(library, cpu::reciprocal_outf, kElementwise);
  structured<meta::structured_round, op::round, op::round_>(library, cpu::round_outf, kRealNumbers);
  structured<meta::structured_round_decimals, op::round_decimals, op::round__decimals>(library, cpu::round_outf,
                                                                                       kFloats);
  structured<meta::structured_rsqrt, op::rsqrt, op::rsqrt_>(library, cpu::rsqrt_outf, kElementwise);
  structured<meta::structured_sgn, op::sgn, op::sgn_>(library, cpu::sgn_outf);
  structured<meta::structured_sigmoid, op::sigmoid, op::sigmoid_>(library, cpu::sigmoid_outf, kElementwise);
  structured<meta::structured_sigmoid_backward, op::sigmoid_backward>(
      library, cpu::sigmoid_backward_outf, {.refused = kBoolean | kIntegers, .elementwise = true});
  structured<meta::structured_sign, op::sign, op::sign_>(library, cpu::sign_outf, kNoComplex);
  structured<meta::structured_signbit, op::signbit>(library, cpu::signbit_outf, kNoComplex);
  structured<meta::structured_sin, op::sin, op::sin_>(library, cpu::sin_outf, kElementwise);
  structured<meta::structured_sinc, op::sinc, op::sinc_>(library, cpu::sinc_outf);
  structured<meta::structured_sinh, op::sinh, op::sinh_>(library, cpu::sinh_outf);
  structured<meta::structured_sqrt, op::sqrt, op::sqrt_>(library, cpu::sqrt_outf, kElementwise);
  structured<meta::structured_tan, op::tan, op::tan_>(library, cpu::tan_outf);
  structured<meta::structured_tanh, op::tanh, op::tanh_>(library, cpu::tanh_outf, kElementwise);
  structured<meta::structured_tanh_backward, op::tanh_backward>(library, cpu::tanh_backward_outf,
                                                                {.refused = kBoolean | kIntegers, .elementwise = true});
  structured<meta::structured_trunc, op::trunc, op::trunc_>(library, cpu::trunc_outf, kRealNumbers);
}

}  // namespace

}  // namespace openreg::ops
