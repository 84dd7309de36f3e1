// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a custom operator in a namespace of our own, with a schema, a kernel and a meta function. The backward is
// an operator, too, and backward_node.cpp connects the two. SwiGLU, silu(gate) * up, is the gate of many transformers'
// feed-forward layers.
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "kernels/swiglu.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

constexpr const char* kSwiglu = "openreg::swiglu";
constexpr const char* kSwigluBackward = "openreg::swiglu_backward";

void check_operands(const char* name, const at::Tensor& gate, const at::Tensor& other) {
  const c10::ScalarType dtype = gate.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16, name,
              ": expected a float, double, half or bfloat16 tensor, but got ", dtype);
  TORCH_CHECK(other.scalar_type() == dtype, name, ": expected operands of one dtype, but got ", dtype, " and ",
              other.scalar_type());
  TORCH_CHECK(other.sym_sizes() == gate.sym_sizes(), name, ": expected operands of one shape, but got ",
              gate.sym_sizes(), " and ", other.sym_sizes());
  TORCH_CHECK(other.device() == gate.device(), "Expected all tensors to be on the same device, but found at least two ",
              "devices, ", gate.device(), " and ", other.device(), "! (when running ", name, ")");
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  check_operands(kSwiglu, gate, up);
  const c10::DeviceGuard guard(gate.device());
  // Copies live until the launch: memory that is freed before it may be given to another thread, whose task comes
  // first.
  const at::Tensor dense_gate = gate.contiguous();
  const at::Tensor dense_up = up.contiguous();
  at::Tensor output = at::empty(gate.sizes(), gate.options());
  runtime::AliasBuilder aliases(kSwiglu);
  auto kernel = [gate = aliases(dense_gate), up = aliases(dense_up),
                 output = aliases.as(orAccessWrite)(output)]() mutable { kernels::swiglu(gate, up, output); };
  runtime::launch(kSwiglu, gate.device().index(), std::move(kernel), aliases.operands());
  return output;
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                   const at::Tensor& up) {
  check_operands(kSwigluBackward, gate, up);
  check_operands(kSwigluBackward, gate, grad);
  const c10::DeviceGuard guard(gate.device());
  const at::Tensor dense_grad = grad.contiguous();
  const at::Tensor dense_gate = gate.contiguous();
  const at::Tensor dense_up = up.contiguous();
  at::Tensor grad_gate = at::empty(gate.sizes(), gate.options());
  at::Tensor grad_up = at::empty(gate.sizes(), gate.options());
  runtime::AliasBuilder aliases(kSwigluBackward);
  auto kernel = [grad = aliases(dense_grad), gate = aliases(dense_gate), up = aliases(dense_up),
                 grad_gate = aliases.as(orAccessWrite)(grad_gate), grad_up = aliases(grad_up)]() mutable {
    kernels::swiglu_backward(grad, gate, up, grad_gate, grad_up);
  };
  runtime::launch(kSwigluBackward, gate.device().index(), std::move(kernel), aliases.operands());
  return {std::move(grad_gate), std::move(grad_up)};
}

at::Tensor swiglu_meta(const at::Tensor& gate, const at::Tensor& up) {
  check_operands(kSwiglu, gate, up);
  return at::empty_symint(gate.sym_sizes(), gate.options());
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward_meta(const at::Tensor& grad, const at::Tensor& gate,
                                                        const at::Tensor& up) {
  check_operands(kSwigluBackward, gate, up);
  check_operands(kSwigluBackward, gate, grad);
  return {at::empty_symint(gate.sym_sizes(), gate.options()), at::empty_symint(gate.sym_sizes(), gate.options())};
}

// A namespace may have one TORCH_LIBRARY and any number of fragments, so every file can define its own operators.
TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("swiglu(Tensor gate, Tensor up) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.def("swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(openreg, PrivateUse1, library) {
  library.impl("swiglu", TORCH_FN(swiglu));
  library.impl("swiglu_backward", TORCH_FN(swiglu_backward));
}

TORCH_LIBRARY_IMPL(openreg, Meta, library) {
  library.impl("swiglu", TORCH_FN(swiglu_meta));
  library.impl("swiglu_backward", TORCH_FN(swiglu_backward_meta));
}

}  // namespace

}  // namespace openreg::ops
