// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: an override of a composite operator. PyTorch composes isfinite of four other operators for every device. A
// kernel for PrivateUse1 takes precedence over that, also above autograd: one launch instead of four.
// operators/blas/linear.cpp overrides an operator that has a derivative.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

at::Tensor isfinite(const at::Tensor& self) {
  // The kernel rejects some dtypes, but runs too late to throw on the calling line, so one CPU element is tried.
  if (self.scalar_type() != at::kFloat) {
    at::isfinite(at::empty({1}, self.options().device(at::kCPU)));
  }
  const c10::DeviceGuard guard(self.device());
  at::Tensor output = at::empty_like(self, self.options().dtype(at::kBool));
  runtime::AliasBuilder aliases("aten::isfinite");
  auto kernel = [input = aliases(self), result = aliases.as(orAccessWrite)(output)]() mutable {
    result.copy_(at::isfinite(input));
  };
  runtime::launch("aten::isfinite", self.device().index(), std::move(kernel), aliases.operands());
  return output;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("isfinite", TORCH_FN(isfinite));
}

// The result has no derivative. Without this line autograd would warn that our kernel has none registered. A
// fallthrough lets the call pass to the next key.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("isfinite", torch::CppFunction::makeFallthrough());
}

}  // namespace

}  // namespace openreg::ops
