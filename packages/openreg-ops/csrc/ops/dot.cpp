// SPDX-License-Identifier: BSD-3-Clause
// Inner products of vectors.
#include <ATen/ops/dot_cpu_dispatch.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/vdot_cpu_dispatch.h>
#include <ATen/ops/vdot_ops.h>
#include <torch/library.h>

#include "common/described.h"

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED(library, dot, at::cpu::dot, describe_dot)
  OPENREG_DESCRIBED(library, vdot, at::cpu::vdot, describe_dot)
}

}  // namespace

}  // namespace openreg::ops
