// SPDX-License-Identifier: BSD-3-Clause
// Custom operator, first way: a schema of our own, a kernel, a meta function; the backward is an operator too, and
// swiglu_autograd.cpp connects the two. SwiGLU, silu(gate) * up, is the gate of many transformers' feed-forward layers.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "declare/launch.h"
#include "kernels/swiglu.h"

namespace openreg::ops {

namespace {

constexpr Operator kSwiglu{"openreg::swiglu"};
constexpr Operator kSwigluBackward{"openreg::swiglu_backward"};

void check_operands(const Operator& op, const at::Tensor& gate, const at::Tensor& other) {
  const c10::ScalarType dtype = gate.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16, op.name,
              ": expected a float, double, half or bfloat16 tensor, but got ", dtype);
  TORCH_CHECK(other.scalar_type() == dtype, op.name, ": expected operands of one dtype, but got ", dtype, " and ",
              other.scalar_type());
  TORCH_CHECK(other.sym_sizes() == gate.sym_sizes(), op.name, ": expected operands of one shape, but got ",
              gate.sym_sizes(), " and ", other.sym_sizes());
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const OperandsDevice device(kSwiglu, gate, up);
  check_operands(kSwiglu, gate, up);
  at::Tensor output = make_output(gate.sizes(), {}, gate.options());
  launch(kSwiglu, device, &kernels::swiglu, gate.contiguous(), up.contiguous(), output);
  return output;
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                   const at::Tensor& up) {
  const OperandsDevice device(kSwigluBackward, grad, gate, up);
  check_operands(kSwigluBackward, gate, up);
  check_operands(kSwigluBackward, gate, grad);
  at::Tensor grad_gate = make_output(gate.sizes(), {}, gate.options());
  at::Tensor grad_up = make_output(gate.sizes(), {}, gate.options());
  launch(kSwigluBackward, device, &kernels::swiglu_backward, grad.contiguous(), gate.contiguous(), up.contiguous(),
         grad_gate, grad_up);
  return {std::move(grad_gate), std::move(grad_up)};
}

// The meta functions: what the kernels give, without values. torch.compile, torch.export and fake tensors ask them.
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

// A namespace may have one TORCH_LIBRARY and any number of fragments; fragments let every file bring its own operators.
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
