// SPDX-License-Identifier: BSD-3-Clause
// Way: overriding a composite operator. PyTorch composes isfinite of four others for every device; a kernel for
// PrivateUse1 takes precedence over that, also above autograd: 1 launch instead of 4. operators/blas/linear.cpp
// overrides one that has a derivative.
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
  // The kernel refuses some dtypes when it runs, too late for an exception on the calling line: one element tells now.
  if (self.scalar_type() != at::kFloat) {
    at::isfinite(at::empty({1}, self.options().device(at::kCPU)));
  }
  const c10::DeviceGuard guard(self.device());
  at::Tensor output = at::empty_like(self, self.options().dtype(at::kBool));
  runtime::Aliases aliases("aten::isfinite");
  auto kernel = [input = aliases(self), result = aliases.as(orAccessWrite)(output)]() mutable {
    result.copy_(at::isfinite(input));
  };
  runtime::launch("aten::isfinite", self.device().index(), std::move(kernel), aliases.operands());
  return output;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("isfinite", TORCH_FN(isfinite));
}

// The result has no derivative. Without this line autograd would warn about the kernel of ours that it knows no
// derivative for; a fallthrough lets the call pass to the next key.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("isfinite", torch::CppFunction::makeFallthrough());
}

}  // namespace

}  // namespace openreg::ops
