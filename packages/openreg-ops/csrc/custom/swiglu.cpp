// SPDX-License-Identifier: BSD-3-Clause
// Custom operator, first way: a schema of our own, a kernel, a meta function; the backward is an operator too, and
// swiglu_autograd.cpp connects the two. SwiGLU, silu(gate) * up, is the gate of many transformers' feed-forward layers.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

#include "common/launch_on.h"
#include "raw/grid.h"

namespace openreg::ops {

namespace {

constexpr const char* kForward = "openreg::swiglu";
constexpr const char* kBackward = "openreg::swiglu_backward";

void check_operands(const char* name, const at::Tensor& gate, const at::Tensor& other) {
  const c10::ScalarType dtype = gate.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16, name,
              ": expected a float, double, half or bfloat16 tensor, but got ", dtype);
  TORCH_CHECK(other.scalar_type() == dtype, name, ": expected operands of one dtype, but got ", dtype, " and ",
              other.scalar_type());
  TORCH_CHECK(other.sym_sizes() == gate.sym_sizes(), name, ": expected operands of one shape, but got ",
              gate.sym_sizes(), " and ", other.sym_sizes());
}

// Calls `visit(i)` for each element, on all threads of the engine.
template <class Visit>
void for_each_element(int64_t count, Visit&& visit) {
  constexpr int64_t kElementsPerThread = 32768;
  raw::parallel(count, kElementsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      visit(i);
    }
  });
}

#define DISPATCH_DTYPES(dtype, name, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, name, __VA_ARGS__)

void forward_kernel(const at::Tensor& gate, const at::Tensor& up, at::Tensor& output) {
  DISPATCH_DTYPES(gate.scalar_type(), kForward, [&] {
    using Number = at::opmath_type<scalar_t>;
    const auto* g = gate.const_data_ptr<scalar_t>();
    const auto* u = up.const_data_ptr<scalar_t>();
    auto* out = output.mutable_data_ptr<scalar_t>();
    for_each_element(output.numel(), [&](int64_t i) {
      const auto x = static_cast<Number>(g[i]);
      out[i] = static_cast<scalar_t>(x / (1 + std::exp(-x)) * static_cast<Number>(u[i]));
    });
  });
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const c10::Device device = device_of(kForward, gate, up);
  check_same_device(kForward, device, gate, up);
  check_operands(kForward, gate, up);
  const CurrentDevice current(device);
  at::Tensor output = make_output(gate.sizes(), {}, gate.options());
  launch_kernel<decltype(&forward_kernel), const at::Tensor&, const at::Tensor&, at::Tensor&>(
      kForward, device, &forward_kernel, gate.contiguous(), up.contiguous(), output);
  return output;
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, at::Tensor& grad_gate,
                     at::Tensor& grad_up) {
  DISPATCH_DTYPES(gate.scalar_type(), kBackward, [&] {
    using Number = at::opmath_type<scalar_t>;
    const auto* d = grad.const_data_ptr<scalar_t>();
    const auto* g = gate.const_data_ptr<scalar_t>();
    const auto* u = up.const_data_ptr<scalar_t>();
    auto* of_gate = grad_gate.mutable_data_ptr<scalar_t>();
    auto* of_up = grad_up.mutable_data_ptr<scalar_t>();
    for_each_element(grad.numel(), [&](int64_t i) {
      const auto delta = static_cast<Number>(d[i]);
      const auto x = static_cast<Number>(g[i]);
      const Number sigmoid = 1 / (1 + std::exp(-x));
      of_up[i] = static_cast<scalar_t>(delta * x * sigmoid);
      of_gate[i] = static_cast<scalar_t>(delta * static_cast<Number>(u[i]) * sigmoid * (1 + x * (1 - sigmoid)));
    });
  });
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                   const at::Tensor& up) {
  const c10::Device device = device_of(kBackward, grad, gate, up);
  check_same_device(kBackward, device, grad, gate, up);
  check_operands(kBackward, gate, up);
  check_operands(kBackward, gate, grad);
  const CurrentDevice current(device);
  at::Tensor grad_gate = make_output(gate.sizes(), {}, gate.options());
  at::Tensor grad_up = make_output(gate.sizes(), {}, gate.options());
  launch_kernel<decltype(&backward_kernel), const at::Tensor&, const at::Tensor&, const at::Tensor&, at::Tensor&,
                at::Tensor&>(kBackward, device, &backward_kernel, grad.contiguous(), gate.contiguous(), up.contiguous(),
                             grad_gate, grad_up);
  return {std::move(grad_gate), std::move(grad_up)};
}

// The meta functions: what the kernels give, without values. torch.compile, torch.export and fake tensors ask them.
at::Tensor swiglu_meta(const at::Tensor& gate, const at::Tensor& up) {
  check_operands(kForward, gate, up);
  return at::empty_symint(gate.sym_sizes(), gate.options());
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward_meta(const at::Tensor& grad, const at::Tensor& gate,
                                                        const at::Tensor& up) {
  check_operands(kBackward, gate, up);
  check_operands(kBackward, gate, grad);
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
