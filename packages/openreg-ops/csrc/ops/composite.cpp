// SPDX-License-Identifier: BSD-3-Clause
// Overriding composite operators where a kernel of our own pays; linear.cpp is one with a derivative. PyTorch composes
// these of other operators for every device; a kernel for PrivateUse1 takes precedence over that, also above autograd.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/isfinite.h>
#include <torch/library.h>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

// 1 launch instead of 4.
void isfinite_kernel(const at::Tensor& self, at::Tensor& output) {
  output.copy_(at::isfinite(self));
}

at::Tensor isfinite(const at::Tensor& self) {
  const CurrentDevice current(self.device());
  const auto strides = at::infer_dense_strides(self.sizes(), self.strides());
  at::Tensor output = make_output(self.sizes(), strides, self.options().dtype(at::kBool));
  launch_kernel<decltype(&isfinite_kernel), const at::Tensor&, at::Tensor&>("aten::isfinite", self.device(),
                                                                            &isfinite_kernel, self, output);
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
