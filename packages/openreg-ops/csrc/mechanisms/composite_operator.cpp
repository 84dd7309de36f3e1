// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a composite operator. An operator that is defined with a function, without a key, is composite: it serves
// every device, and its derivative is that of the operators inside. The operators here have the names of those in
// PyTorch's own example backend, for code that was written for it.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr double kGradientScale = 0.5;

at::Tensor custom_abs(const at::Tensor& input) {
  return at::abs(input);
}

struct ReturnsSelf : Function<ReturnsSelf> {
  static at::Tensor forward(AutogradContext* /*context*/, const at::Tensor& self) { return self; }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& grads) {
    return {grads[0] * kGradientScale};
  }
};

struct Aliasing : Function<Aliasing> {
  static at::Tensor forward(AutogradContext* /*context*/, const at::Tensor& self) {
    return self.view_symint(self.sym_sizes());
  }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& grads) {
    return {grads[0] * kGradientScale};
  }
};

at::Tensor custom_autograd_fn_returns_self(const at::Tensor& self) {
  return ReturnsSelf::apply(self);
}

at::Tensor custom_autograd_fn_aliasing(const at::Tensor& self) {
  return Aliasing::apply(self);
}

TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("custom_abs(Tensor input) -> Tensor", TORCH_FN(custom_abs), {at::Tag::pt2_compliant_tag});
  library.def("custom_autograd_fn_returns_self(Tensor self) -> Tensor", TORCH_FN(custom_autograd_fn_returns_self));
  library.def("custom_autograd_fn_aliasing(Tensor self) -> Tensor", TORCH_FN(custom_autograd_fn_aliasing));
}

}  // namespace

}  // namespace openreg::ops
