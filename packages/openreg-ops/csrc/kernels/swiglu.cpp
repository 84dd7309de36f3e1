// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/swiglu.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>

#include <cmath>

#include "kernels/parallel.h"

namespace openreg::ops::kernels {

namespace {

constexpr int64_t kElementsPerThread = 32768;

}  // namespace

void swiglu(const at::Tensor& gate, const at::Tensor& up, at::Tensor& output) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gate.scalar_type(), "swiglu", [&] {
    using Number = at::opmath_type<scalar_t>;
    const auto* g = gate.const_data_ptr<scalar_t>();
    const auto* u = up.const_data_ptr<scalar_t>();
    auto* out = output.mutable_data_ptr<scalar_t>();
    for_each_item(output.numel(), kElementsPerThread, [&](int64_t i) {
      const auto x = static_cast<Number>(g[i]);
      out[i] = static_cast<scalar_t>(x / (1 + std::exp(-x)) * static_cast<Number>(u[i]));
    });
  });
}

void swiglu_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, at::Tensor& grad_gate,
                     at::Tensor& grad_up) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gate.scalar_type(), "swiglu_backward", [&] {
    using Number = at::opmath_type<scalar_t>;
    const auto* d = grad.const_data_ptr<scalar_t>();
    const auto* g = gate.const_data_ptr<scalar_t>();
    const auto* u = up.const_data_ptr<scalar_t>();
    auto* of_gate = grad_gate.mutable_data_ptr<scalar_t>();
    auto* of_up = grad_up.mutable_data_ptr<scalar_t>();
    for_each_item(grad.numel(), kElementsPerThread, [&](int64_t i) {
      const auto delta = static_cast<Number>(d[i]);
      const auto x = static_cast<Number>(g[i]);
      const Number sigmoid = 1 / (1 + std::exp(-x));
      of_up[i] = static_cast<scalar_t>(delta * x * sigmoid);
      of_gate[i] = static_cast<scalar_t>(delta * static_cast<Number>(u[i]) * sigmoid * (1 + x * (1 - sigmoid)));
    });
  });
}

}  // namespace openreg::ops::kernels
