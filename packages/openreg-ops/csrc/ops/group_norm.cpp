// SPDX-License-Identifier: BSD-3-Clause
// Group normalisation with backward.
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/ops/native_group_norm_backward_cpu_dispatch.h>
#include <ATen/ops/native_group_norm_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_function.h"
#include "common/results_in_place.h"

namespace openreg::ops {

namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// The input is (n, c, ...), with hxw elements in what follows.
struct GroupNormShape {
  int64_t n;
  int64_t c;
  int64_t hxw;
  int64_t groups;
};

void check_operands(const char* name, const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                    const GroupNormShape& shape) {
  TORCH_CHECK(shape.groups > 0 && shape.c % shape.groups == 0,
              "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
              input.sizes(), " and num_groups=", shape.groups);
  TORCH_CHECK(input.numel() == shape.n * shape.c * shape.hxw, name, ": an input of shape ", input.sizes(), " is not ",
              shape.n, " x ", shape.c, " x ", shape.hxw, " elements");
  for (const auto& parameter : {weight, bias}) {
    TORCH_CHECK(!is_given(parameter) || (parameter->dim() == 1 && parameter->numel() == shape.c), name,
                ": expected weight and bias to be vectors of ", shape.c, " elements, but got ", parameter->sizes());
  }
}

// The CPU's kernels take operands that are dense in the format that the input suggests, and dense parameters.

std::optional<at::Tensor> dense(MaybeTensor parameter) {
  return is_given(parameter) ? std::optional(parameter->contiguous()) : std::nullopt;
}

void forward_kernel(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, GroupNormShape shape, double eps,
                    at::Tensor& output, at::Tensor& mean, at::Tensor& rstd) {
  const at::Tensor dense_input = input.contiguous(input.suggest_memory_format());
  ResultsInPlace results({output, mean, rstd});
  const auto [computed, computed_mean, computed_rstd] = at::cpu::native_group_norm(
      dense_input, dense(weight), dense(bias), shape.n, shape.c, shape.hxw, shape.groups, eps);
  results.put({computed, computed_mean, computed_rstd});
}

Tensors native_group_norm(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t n, int64_t c,
                          int64_t hxw, int64_t groups, double eps) {
  constexpr const char* kName = "aten::native_group_norm";
  const GroupNormShape shape{n, c, hxw, groups};
  const c10::Device device = device_of(kName, input, weight, bias);
  check_same_device(kName, device, input, weight, bias);
  check_operands(kName, input, weight, bias, shape);
  const at::Tensor gamma = value_or_undefined(weight);
  const at::Tensor beta = value_or_undefined(bias);
  const bool mixed = at::native::is_mixed_type(input, gamma, beta);
  if (mixed) {
    at::native::check_mixed_data_type(input, gamma, beta);
  }
  const CurrentDevice current(device);
  const auto statistics =
      input.options().memory_format(std::nullopt).dtype(at::native::param_scalar_type(input, mixed));
  at::Tensor output = make_output_in_format_of(input);
  at::Tensor mean = make_output({n, groups}, {}, statistics);
  at::Tensor rstd = make_output({n, groups}, {}, statistics);
  launch_function(kName, device, &forward_kernel, input, weight, bias, shape, eps, output, mean, rstd);
  return {std::move(output), std::move(mean), std::move(rstd)};
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& rstd,
                     MaybeTensor weight, GroupNormShape shape, at::Tensor& grad_input, at::Tensor& grad_weight,
                     at::Tensor& grad_bias) {
  const auto format = input.suggest_memory_format();
  const at::Tensor dense_grad = grad.contiguous(format);
  const at::Tensor dense_input = input.contiguous(format);
  ResultsInPlace results({grad_input, grad_weight, grad_bias});
  const auto [of_input, of_weight, of_bias] = at::cpu::native_group_norm_backward(
      dense_grad, dense_input, mean.contiguous(), rstd.contiguous(), dense(weight), shape.n, shape.c, shape.hxw,
      shape.groups, {grad_input.defined(), grad_weight.defined(), grad_bias.defined()});
  results.put({of_input, of_weight, of_bias});
}

Tensors native_group_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                                   const at::Tensor& rstd, MaybeTensor weight, int64_t n, int64_t c, int64_t hxw,
                                   int64_t groups, std::array<bool, 3> wanted) {
  constexpr const char* kName = "aten::native_group_norm_backward";
  const GroupNormShape shape{n, c, hxw, groups};
  const c10::Device device = device_of(kName, grad, input);
  check_same_device(kName, device, grad, input, mean, rstd, weight);
  check_operands(kName, input, weight, std::nullopt, shape);
  const CurrentDevice current(device);
  at::Tensor grad_input = wanted[0] ? make_output_in_format_of(input) : at::Tensor();
  // Without a weight there is no bias either.
  const at::TensorOptions parameters = is_given(weight) ? weight->options() : input.options();
  const auto options = parameters.memory_format(std::nullopt);
  at::Tensor grad_weight = output_if(wanted[1] && is_given(weight), {c}, options);
  at::Tensor grad_bias = output_if(wanted[2] && is_given(weight), {c}, options);
  launch_function(kName, device, &backward_kernel, grad, input, mean, rstd, weight, shape, grad_input, grad_weight,
                  grad_bias);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_group_norm", TORCH_FN(native_group_norm));
  library.impl("native_group_norm_backward", TORCH_FN(native_group_norm_backward));
}

}  // namespace

}  // namespace openreg::ops
