// SPDX-License-Identifier: BSD-3-Clause
// Scans that are not structured: running extrema and logcumsumexp.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_cummax_helper_cpu_dispatch.h>
#include <ATen/ops/_cummax_helper_ops.h>
#include <ATen/ops/_cummin_helper_cpu_dispatch.h>
#include <ATen/ops/_cummin_helper_ops.h>
#include <ATen/ops/_logcumsumexp_cpu_dispatch.h>
#include <ATen/ops/_logcumsumexp_ops.h>
#include <torch/library.h>

#include "common/described.h"
#include "common/launch_on.h"

namespace openreg::ops {

namespace {

OutputSpec describe_logcumsumexp(const at::Tensor& self, int64_t dim) {
  at::maybe_wrap_dim(dim, self.dim());
  require_dtype(self.is_floating_point() || self.is_complex(), "logcumsumexp_out_cpu", self.scalar_type());
  OutputSpec spec = output_of_shape(self);
  spec.elementwise = true;
  return spec;
}

// PyTorch makes the outputs: torch.cummax() gives values and indices of the operand's shape.
void cummax_helper(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  require_dtype(!self.is_complex(), "cummax_cpu", self.scalar_type());
  InplaceLaunch<at::_ops::_cummax_helper>::call<at::cpu::_cummax_helper>(self, values, indices, dim);
}

void cummin_helper(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  require_dtype(!self.is_complex(), "cummin_cpu", self.scalar_type());
  InplaceLaunch<at::_ops::_cummin_helper>::call<at::cpu::_cummin_helper>(self, values, indices, dim);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_cummax_helper", TORCH_FN(cummax_helper));
  library.impl("_cummin_helper", TORCH_FN(cummin_helper));
  OPENREG_DESCRIBED_OUT(library, _logcumsumexp, _logcumsumexp_out, at::cpu::_logcumsumexp_outf, describe_logcumsumexp)
}

}  // namespace

}  // namespace openreg::ops
