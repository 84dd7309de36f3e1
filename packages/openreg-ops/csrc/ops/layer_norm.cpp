// SPDX-License-Identifier: BSD-3-Clause
// Layer normalisation with backward.
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/native_layer_norm_backward_cpu_dispatch.h>
#include <ATen/ops/native_layer_norm_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_function.h"
#include "common/results_in_place.h"

namespace openreg::ops {

namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

void forward_kernel(const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight, MaybeTensor bias, double eps,
                    at::Tensor& output, at::Tensor& mean, at::Tensor& rstd) {
  ResultsInPlace results({output, mean, rstd});
  const auto [computed, computed_mean, computed_rstd] = at::cpu::native_layer_norm(input, shape, weight, bias, eps);
  results.put({computed, computed_mean, computed_rstd});
}

Tensors native_layer_norm(const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight, MaybeTensor bias,
                          double eps) {
  constexpr const char* kName = "aten::native_layer_norm";
  const c10::Device device = device_of(kName, input, weight, bias);
  check_same_device(kName, device, input, weight, bias);
  const at::Tensor gamma = value_or_undefined(weight);
  const at::Tensor beta = value_or_undefined(bias);
  at::native::_check_layer_norm_inputs(input, shape, gamma, beta);
  const bool mixed = at::native::is_mixed_type(input, gamma, beta);
  if (mixed) {
    at::native::check_mixed_data_type(input, gamma, beta);
  }
  const CurrentDevice current(device);
  const auto options = input.options().memory_format(std::nullopt);
  std::vector<int64_t> rows = input.sizes().vec();
  std::fill(rows.end() - static_cast<int64_t>(shape.size()), rows.end(), 1);
  const auto statistics = options.dtype(at::native::param_scalar_type(input, mixed));
  at::Tensor output = make_output(input.sizes(), {}, options);
  at::Tensor mean = make_output(rows, {}, statistics);
  at::Tensor rstd = make_output(rows, {}, statistics);
  launch_function(kName, device, &forward_kernel, input, shape, weight, bias, eps, output, mean, rstd);
  return {std::move(output), std::move(mean), std::move(rstd)};
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& input, c10::IntArrayRef shape, const at::Tensor& mean,
                     const at::Tensor& rstd, MaybeTensor weight, MaybeTensor bias, at::Tensor& grad_input,
                     at::Tensor& grad_weight, at::Tensor& grad_bias) {
  ResultsInPlace results({grad_input, grad_weight, grad_bias});
  const auto [of_input, of_weight, of_bias] = at::cpu::native_layer_norm_backward(
      grad, input, shape, mean, rstd, weight, bias, {grad_input.defined(), grad_weight.defined(), grad_bias.defined()});
  results.put({of_input, of_weight, of_bias});
}

Tensors native_layer_norm_backward(const at::Tensor& grad, const at::Tensor& input, c10::IntArrayRef shape,
                                   const at::Tensor& mean, const at::Tensor& rstd, MaybeTensor weight, MaybeTensor bias,
                                   std::array<bool, 3> wanted) {
  constexpr const char* kName = "aten::native_layer_norm_backward";
  const c10::Device device = device_of(kName, grad, input);
  check_same_device(kName, device, grad, input, mean, rstd, weight, bias);
  const at::Tensor gamma = value_or_undefined(weight);
  const at::Tensor beta = value_or_undefined(bias);
  at::native::_check_layer_norm_inputs(input, shape, gamma, beta);
  TORCH_CHECK(grad.sizes() == input.sizes(), kName, ": the gradient has shape ", grad.sizes(), ", the input ",
              input.sizes());
  const CurrentDevice current(device);
  const auto gradient_of = [](bool needed, const at::Tensor& operand) {
    const auto options = operand.defined() ? operand.options().memory_format(std::nullopt) : at::TensorOptions();
    return operand.defined() ? output_if(needed, operand.sizes(), options) : at::Tensor();
  };
  at::Tensor grad_input = gradient_of(wanted[0], input);
  at::Tensor grad_weight = gradient_of(wanted[1], gamma);
  at::Tensor grad_bias = gradient_of(wanted[2], beta);
  launch_function(kName, device, &backward_kernel, grad, input, shape, mean, rstd, weight, bias, grad_input,
                  grad_weight, grad_bias);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_layer_norm", TORCH_FN(native_layer_norm));
  library.impl("native_layer_norm_backward", TORCH_FN(native_layer_norm_backward));
}

}  // namespace

}  // namespace openreg::ops
