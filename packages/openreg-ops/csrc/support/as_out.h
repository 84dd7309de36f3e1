// SPDX-License-Identifier: BSD-3-Clause
// as_out<> makes an out= kernel from a functional kernel, for an unstructured operator whose own out= kernel in PyTorch
// does not suffice. That kernel requires contiguous outputs, or uses the output as scratch memory for intermediate
// results with more elements than the output, as that of binary_cross_entropy with a reduction does.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace openreg::ops {

// Adapts a functional kernel to the signature of an out= kernel: AsOut<&at::cpu::X>::call(args..., outputs...) assigns
// the results to `outputs`, which then are other tensors than the aliases of the operator's outputs. RunOutKernel in
// registration/unstructured.h, which calls the kernel, therefore copies the results into the aliases.
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

// The adapted kernel as an argument of a registration, such as as_out<cpu::huber_loss>.
template <auto kKernel>
constexpr auto as_out = &AsOut<kKernel>::call;

}  // namespace openreg::ops
