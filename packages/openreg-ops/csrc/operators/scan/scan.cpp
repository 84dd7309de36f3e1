// SPDX-License-Identifier: BSD-3-Clause
// Scans: running sums, products and extrema.
#include <ATen/WrapDimUtils.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Check only the dtype, because torch.cummax() and torch.cummin() allocate the outputs: values and indices of the
// operand's shape.
constexpr auto check_cummax = [](const at::Tensor& self, const auto&... /*rest*/) {
  require_dtype(!self.is_complex(), "cummax_cpu", self.scalar_type());
};
constexpr auto check_cummin = [](const at::Tensor& self, const auto&... /*rest*/) {
  require_dtype(!self.is_complex(), "cummin_cpu", self.scalar_type());
};

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
