// SPDX-License-Identifier: BSD-3-Clause
// The operator openreg::example_scale, without a derivative.
// It is a schema, a kernel that runs on the device's stream, and a meta function that tells shape and dtype without
// values.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "openreg/runtime/alias.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/launch.h"

namespace openreg::example {

namespace {

constexpr const char* kName = "openreg::example_scale";

void check_operand(const at::Tensor& self) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), kName, ": expected a floating-point tensor, but got ",
              self.scalar_type(), " on ", self.device(), ". Convert it first, for example with .float().");
}

at::Tensor scale(const at::Tensor& self, double factor) {
  check_operand(self);
  const runtime::CurrentDeviceGuard current(self.device().index());
  const at::Tensor input = self.contiguous();
  at::Tensor output = at::empty(input.sizes(), input.options());
  // The kernel works on the device's memory through CPU tensors and owns no tensor of the device. What it reads and
  // what it writes is reported to observers that ask.
  runtime::AliasBuilder aliases(kName);
  const at::Tensor from = aliases(input);
  const at::Tensor to = aliases.as(orAccessWrite)(output);
  runtime::launch(
      kName, self.device().index(), [from, to, factor] { to.copy_(from).mul_(factor); }, aliases.operands());
  return output;
}

at::Tensor scale_meta(const at::Tensor& self, double /*factor*/) {
  check_operand(self);
  return at::empty_symint(self.sym_sizes(), self.options());
}

TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("example_scale(Tensor self, float factor) -> Tensor", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(openreg, PrivateUse1, library) {
  library.impl("example_scale", TORCH_FN(scale));
}

TORCH_LIBRARY_IMPL(openreg, Meta, library) {
  library.impl("example_scale", TORCH_FN(scale_meta));
}

// PyTorch's ready-made kernel for operators without a derivative: a backward pass through it is an error.
TORCH_LIBRARY_IMPL(openreg, AutogradPrivateUse1, library) {
  library.impl("example_scale", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace

}  // namespace openreg::example
