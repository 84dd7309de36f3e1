// SPDX-License-Identifier: BSD-3-Clause
// Comparisons, logical and bit operations of two operands.
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/result_type.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

// The functions of `x << n` and `x >> n` in Python, for which PyTorch has separate operators. They do what
// bitwise_left_shift() and bitwise_right_shift() do.
constexpr auto shift_left = [](const at::Tensor& self, const auto& other) {
  return at::bitwise_left_shift(self, other);
};
constexpr auto shift_right = [](const at::Tensor& self, const auto& other) {
  return at::bitwise_right_shift(self, other);
};
constexpr auto shift_left_ = [](at::Tensor& self, const auto& other) -> at::Tensor& {
  return self.bitwise_left_shift_(other);
};
constexpr auto shift_right_ = [](at::Tensor& self, const auto& other) -> at::Tensor& {
  return self.bitwise_right_shift_(other);
};

// Rejects operands whose common dtype is complex with half precision, such as half and a complex number, because no
// kernel supports it.
OutputSpec meta_logical(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  const c10::ScalarType dtype = at::result_type(self, other);
  require_dtype(dtype != at::kComplexHalf, "a logical operation of two tensors", dtype);
  return by_iterator(self, other, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kOrdered{.refused = kComplex | dtype_set(c10::ScalarType::ComplexHalf)};
  constexpr KernelTraits kBits{.refused = kFloating | kComplex};
  constexpr KernelTraits kIntegral{.refused = kBoolean | kFloating | kComplex};
  function<op::__ilshift___Scalar>(library, shift_left_);
  function<op::__ilshift___Tensor>(library, shift_left_);
  function<op::__irshift___Scalar>(library, shift_right_);
  function<op::__irshift___Tensor>(library, shift_right_);
  function<op::__lshift___Scalar>(library, shift_left);
  function<op::__lshift___Tensor>(library, shift_left);
  function<op::__rshift___Scalar>(library, shift_right);
  function<op::__rshift___Tensor>(library, shift_right);
  structured<meta::structured_bitwise_and_Tensor, op::bitwise_and_Tensor, op::bitwise_and__Tensor>(
      library, cpu::bitwise_and_outf, kBits);
  structured<meta::structured_bitwise_left_shift_Tensor, op::bitwise_left_shift_Tensor, op::bitwise_left_shift__Tensor>(
      library, cpu::bitwise_left_shift_outf, kIntegral);
  structured<meta::structured_bitwise_or_Tensor, op::bitwise_or_Tensor, op::bitwise_or__Tensor>(
      library, cpu::bitwise_or_outf, kBits);
  structured<meta::structured_bitwise_right_shift_Tensor, op::bitwise_right_shift_Tensor,
             op::bitwise_right_shift__Tensor>(library, cpu::bitwise_right_shift_outf, kIntegral);
  structured<meta::structured_bitwise_xor_Tensor, op::bitwise_xor_Tensor, op::bitwise_xor__Tensor>(
      library, cpu::bitwise_xor_outf, kBits);
  structured<meta::structured_eq_Scalar, op::eq_Scalar, op::eq__Scalar>(library, cpu::eq_outf);
  structured<meta::structured_eq_Tensor, op::eq_Tensor, op::eq__Tensor>(library, cpu::eq_outf);
  structured<meta::structured_ge_Scalar, op::ge_Scalar, op::ge__Scalar>(library, cpu::ge_outf, kOrdered);
  structured<meta::structured_ge_Tensor, op::ge_Tensor, op::ge__Tensor>(library, cpu::ge_outf, kOrdered);
  structured<meta::structured_gt_Scalar, op::gt_Scalar, op::gt__Scalar>(library, cpu::gt_outf, kOrdered);
  structured<meta::structured_gt_Tensor, op::gt_Tensor, op::gt__Tensor>(library, cpu::gt_outf, kOrdered);
  structured<meta::structured_le_Scalar, op::le_Scalar, op::le__Scalar>(library, cpu::le_outf, kOrdered);
  structured<meta::structured_le_Tensor, op::le_Tensor, op::le__Tensor>(library, cpu::le_outf, kOrdered);
  unstructured<meta_logical, op::logical_and_out>(library, cpu::logical_and_outf);
  unstructured<meta_logical, op::logical_or_out>(library, cpu::logical_or_outf);
  unstructured<meta_logical, op::logical_xor_out>(library, cpu::logical_xor_outf);
  structured<meta::structured_lt_Scalar, op::lt_Scalar, op::lt__Scalar>(library, cpu::lt_outf, kOrdered);
  structured<meta::structured_lt_Tensor, op::lt_Tensor, op::lt__Tensor>(library, cpu::lt_outf, kOrdered);
  structured<meta::structured_ne_Scalar, op::ne_Scalar, op::ne__Scalar>(library, cpu::ne_outf);
  structured<meta::structured_ne_Tensor, op::ne_Tensor, op::ne__Tensor>(library, cpu::ne_outf);
}

}  // namespace

}  // namespace openreg::ops
