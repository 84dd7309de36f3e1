// SPDX-License-Identifier: BSD-3-Clause
// Products of vectors: inner ones, and the outer one that is added to a matrix, in one kernel, which rounds once.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/result_type.h>

#include "declare/declare.h"

namespace openreg::ops {

namespace {

OutputSpec describe_dot(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
  require_dtype(self.scalar_type() != at::kBool, "dot", self.scalar_type());
  return scalar_output(self.scalar_type());
}

const auto kVdot = described_operator<describe_dot, op::vdot>(cpu::vdot);

// Lazily conjugated where PyTorch's own is, which shows in the result's conjugate bit.
at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) {
  if (self.is_complex() && other.is_conj()) {
    return self.is_conj() ? other.conj().vdot(self.conj()) : self.dot(other.conj()).conj();
  }
  return kVdot.functional(self, other);
}

constexpr Operator kAddr{"aten::addr"};

c10::ScalarType check_operands(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second,
                               const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(first.dim() == 1, "vec1: Expected 1-D argument vec1, but got ", first.dim(), "-D");
  TORCH_CHECK(second.dim() == 1, "vec2: Expected 1-D argument vec2, but got ", second.dim(), "-D");
  TORCH_CHECK(at::is_expandable_to(self.sizes(), {first.size(0), second.size(0)}), "The expanded size of the tensor (",
              first.size(0), ", ", second.size(0), ") must match the existing size ", self.sizes());
  const c10::ScalarType dtype = c10::promoteTypes(at::result_type(self, first), at::result_type(first, second));
  TORCH_CHECK(!(beta.isBoolean() || alpha.isBoolean()) || dtype == at::kBool,
              "Boolean beta and alpha only supported for Boolean results.");
  TORCH_CHECK(
      at::isFloatingType(dtype) || at::isComplexType(dtype) || (beta.isIntegral(true) && alpha.isIntegral(true)),
      "For integral input tensors, argument alpha and beta must not be floating point numbers.");
  return dtype;
}

// Gives a new output the shape and the strides that PyTorch's iterator settles on.
void settle_strides(const at::Tensor& out, const at::Tensor& self, const at::Tensor& first, const at::Tensor& second) {
  at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_owned_const_input(self.expand({first.size(0), second.size(0)}))
      .add_owned_const_input(first.reshape({first.size(0), 1}))
      .add_const_input(second)
      .build();
}

at::Tensor addr(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                const at::Scalar& alpha) {
  const OperandsDevice device(kAddr, self, first, second);
  const c10::ScalarType dtype = check_operands(self, first, second, beta, alpha);
  at::Tensor out = make_output({0}, {}, at::TensorOptions(device).dtype(dtype));
  settle_strides(out, self, first, second);
  launch_described<1>(kAddr, device, &cpu::addr_outf, {out}, self, first, second, beta, alpha);
  return out;
}

at::Tensor& addr_out(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                     const at::Scalar& alpha, at::Tensor& out) {
  const OperandsDevice device(kAddr, self, first, second, out);
  const c10::ScalarType dtype = check_operands(self, first, second, beta, alpha);
  TORCH_CHECK(c10::canCast(dtype, out.scalar_type()), "result type ", dtype,
              " can't be cast to the desired output type ", out.scalar_type());
  if (out.is_same(self)) {
    TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
    TORCH_CHECK(self.size(0) == first.size(0) && self.size(1) == second.size(0), "size mismatch, input: ", self.sizes(),
                ", v1: ", first.sizes(), ", v2: ", second.sizes());
    at::assert_no_internal_overlap(out);
  } else {
    resize_out(out, {first.size(0), second.size(0)}, {}, out.options());
    at::assert_no_internal_overlap(out);
    at::assert_no_partial_overlap(out, self);
  }
  launch_described<1>(kAddr, device, &cpu::addr_outf, {out}, self, first, second, beta, alpha);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::addr>(library, addr);
  function<op::addr_out>(library, addr_out);
  described<describe_dot, op::dot>(library, cpu::dot);
  function<op::vdot>(library, vdot);
}

}  // namespace

}  // namespace openreg::ops
