// SPDX-License-Identifier: BSD-3-Clause
// Products of vectors: inner products, and addr, which adds an outer product to a matrix in one kernel and rounds once.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/result_type.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

OutputSpec meta_dot(const at::Tensor& self, const at::Tensor& other) {
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

const auto kVdot = unstructured_operator<meta_dot, op::vdot>(cpu::vdot);

// Conjugates lazily in the cases in which PyTorch does, because the result's conjugate bit shows it.
at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) {
  if (self.is_complex() && other.is_conj()) {
    return self.is_conj() ? other.conj().vdot(self.conj()) : self.dot(other.conj()).conj();
  }
  return kVdot.functional(self, other);
}

OutputSpec meta_addr(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                     const at::Scalar& alpha) {
  TORCH_CHECK(first.dim() == 1, "vec1: Expected 1-D argument vec1, but got ", first.dim(), "-D");
  TORCH_CHECK(second.dim() == 1, "vec2: Expected 1-D argument vec2, but got ", second.dim(), "-D");
  const c10::DimVector sizes{first.size(0), second.size(0)};
  TORCH_CHECK(at::is_expandable_to(self.sizes(), sizes), "The expanded size of the tensor (", first.size(0), ", ",
              second.size(0), ") must match the existing size ", self.sizes());
  // A 0-dim `self` determines the dtype like a matrix, because PyTorch first expands it to one.
  const c10::ScalarType dtype =
      c10::promoteTypes(self.scalar_type(), c10::promoteTypes(first.scalar_type(), second.scalar_type()));
  TORCH_CHECK(!(beta.isBoolean() || alpha.isBoolean()) || dtype == at::kBool,
              "Boolean beta and alpha only supported for Boolean results.");
  TORCH_CHECK(
      at::isFloatingType(dtype) || at::isComplexType(dtype) || (beta.isIntegral(true) && alpha.isIntegral(true)),
      "For integral input tensors, argument alpha and beta must not be floating point numbers.");
  return (self.sizes() == c10::IntArrayRef(sizes) ? output_like(self, dtype) : output_of(sizes, dtype))
      .allowing({.casts = true, .elementwise = true});
}

const auto kAddr = unstructured_operator<meta_addr, op::addr>(cpu::addr_outf);

at::Tensor& addr_out(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                     const at::Scalar& alpha, at::Tensor& out) {
  if (out.is_same(self) && first.dim() == 1 && second.dim() == 1) {
    TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
    TORCH_CHECK(self.size(0) == first.size(0) && self.size(1) == second.size(0), "size mismatch, input: ", self.sizes(),
                ", v1: ", first.sizes(), ", v2: ", second.sizes());
  }
  return kAddr.out(self, first, second, beta, alpha, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::addr>(library, [](auto... args) { return kAddr.functional(args...); });
  function<op::addr_out>(library, addr_out);
  unstructured<meta_dot, op::dot>(library, cpu::dot);
  function<op::vdot>(library, vdot);
}

}  // namespace

}  // namespace openreg::ops
