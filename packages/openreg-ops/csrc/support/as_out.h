// SPDX-License-Identifier: BSD-3-Clause
// For described operators: the out= kernel of an operator whose own cannot be used, because it takes only
// contiguous outputs or is too small a buffer for its intermediate results.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace openreg::ops {

// AsOut<&at::cpu::X>::call(args..., outputs...) lets the outputs be the results of the functional kernel, which
// the launch copies to their places.
template <auto kKernel>
struct AsOut;

template <class... Args, at::Tensor (*kKernel)(Args...)>
struct AsOut<kKernel> {
  static at::Tensor& call(Args... args, at::Tensor& out) { return out = kKernel(args...); }
};

template <class... Args, std::tuple<at::Tensor, at::Tensor> (*kKernel)(Args...)>
struct AsOut<kKernel> {
  static std::tuple<at::Tensor&, at::Tensor&> call(Args... args, at::Tensor& first, at::Tensor& second) {
    std::tie(first, second) = kKernel(args...);
    return {first, second};
  }
};

// The kernel as declarations take it: as_out<cpu::huber_loss>.
template <auto kKernel>
constexpr auto as_out = &AsOut<kKernel>::call;

}  // namespace openreg::ops
