// SPDX-License-Identifier: BSD-3-Clause
// Scans: running sums, products and extrema.
#include <ATen/WrapDimUtils.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Check the outputs, too. torch.cummax() and torch.cummin() allocate them like the operand, but the kernels, which
// these call through an operator, write as many elements as the operand has.
template <class Op>
void check_extrema(const char* kernel, const at::Tensor& self, const at::Tensor& values, const at::Tensor& indices) {
  require_dtype(!self.is_complex(), kernel, self.scalar_type());
  expect_like(Op::name, "values", values, self);
  expect(Op::name, "indices", indices, self.sizes(), at::kLong);
}
void check_cummax(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t /*dim*/) {
  check_extrema<op::_cummax_helper>("cummax_cpu", self, values, indices);
}
void check_cummin(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t /*dim*/) {
  check_extrema<op::_cummin_helper>("cummin_cpu", self, values, indices);
}

// Throws NotImplementedError for boolean outputs, because the kernels compute in the output's dtype and do not support
// booleans.
template <class Op>
void check_cumulative(const at::Tensor& self, int64_t /*dim*/, std::optional<c10::ScalarType> /*dtype*/,
                      at::Tensor& out) {
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool || self.dim() == 0 || self.numel() == 0, "\"",
                              Op::name + 6, "_out_cpu\" not implemented for '", out.scalar_type(), "'");
}

OutputSpec meta_logcumsumexp(const at::Tensor& self, int64_t dim) {
  at::maybe_wrap_dim(dim, self.dim());
  require_dtype(self.is_floating_point() || self.is_complex(), "logcumsumexp_out_cpu", self.scalar_type());
  return output_of_shape(self).allowing({.elementwise = true});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kTraits{.overlap = kNotItselfNoPart};
  unstructured<check_cummax, op::_cummax_helper>(library, cpu::_cummax_helper);
  unstructured<check_cummin, op::_cummin_helper>(library, cpu::_cummin_helper);
  structured<meta::structured_cumprod, op::cumprod, op::cumprod_>(library, cpu::cumprod_outf, kTraits,
                                                                  {.check_outputs = check_cumulative<op::cumprod>});
  structured<meta::structured_cumsum, op::cumsum, op::cumsum_>(library, cpu::cumsum_outf, checked(kTraits),
                                                               {.check_outputs = check_cumulative<op::cumsum>});
  unstructured<meta_logcumsumexp, op::_logcumsumexp>(library, cpu::_logcumsumexp_outf);
}

}  // namespace

}  // namespace openreg::ops
