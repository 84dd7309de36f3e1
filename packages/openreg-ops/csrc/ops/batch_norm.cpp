// SPDX-License-Identifier: BSD-3-Clause
// Batch normalisation with backward. PyTorch has three families of operators for it; all run the same two kernels.
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/ops/native_batch_norm_backward_cpu_dispatch.h>
#include <ATen/ops/native_batch_norm_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_function.h"
#include "common/results_in_place.h"

namespace openreg::ops {

namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Statistics are kept in float where the operand is of lower precision and what is known of them is float.
template <class... Parameters>
at::TensorOptions statistics_options(const at::Tensor& input, const Parameters&... parameters) {
  const bool mixed = at::native::is_mixed_type(input, parameters.value_or(at::Tensor())...);
  if (mixed) {
    at::native::check_mixed_data_type(input, parameters.value_or(at::Tensor())...);
  }
  return input.options().memory_format(std::nullopt).dtype(at::native::param_scalar_type(input, mixed));
}

void training_kernel(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                     std::optional<at::Tensor>& running_mean, std::optional<at::Tensor>& running_var, double momentum,
                     double eps, at::Tensor& output, at::Tensor& save_mean, at::Tensor& save_invstd) {
  ResultsInPlace results({output, save_mean, save_invstd});
  const auto [computed, mean, invstd] =
      at::cpu::native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  results.put({computed, mean, invstd});
}

void evaluation_kernel(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                       MaybeTensor running_var, double momentum, double eps, at::Tensor& output) {
  ResultsInPlace results({output});
  results.put(
      {std::get<0>(at::cpu::native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps))});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input, MaybeTensor weight,
                                                                 MaybeTensor bias, MaybeTensor running_mean,
                                                                 MaybeTensor running_var, bool training,
                                                                 double momentum, double eps) {
  constexpr const char* kName = "aten::native_batch_norm";
  const c10::Device device = device_of(kName, input, weight);
  check_same_device(kName, device, input, weight, bias, running_mean, running_var);
  const CurrentDevice current(device);
  at::Tensor output = make_output_in_format_of(input);
  // In evaluation nothing is saved, and PyTorch gives empty tensors.
  const int64_t saved = training ? input.size(1) : 0;
  const auto statistics = statistics_options(input, weight, bias, running_mean, running_var);
  at::Tensor save_mean = make_output({saved}, {}, statistics);
  at::Tensor save_invstd = make_output({saved}, {}, statistics);
  if (training) {
    auto [mean, var] = std::pair(running_mean, running_var);
    launch_function(kName, device, &training_kernel, input, weight, bias, mean, var, momentum, eps, output, save_mean,
                    save_invstd);
  } else {
    launch_function(kName, device, &evaluation_kernel, input, weight, bias, running_mean, running_var, momentum, eps,
                    output);
  }
  return {std::move(output), std::move(save_mean), std::move(save_invstd)};
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& input, MaybeTensor weight, MaybeTensor running_mean,
                     MaybeTensor running_var, MaybeTensor save_mean, MaybeTensor save_invstd, bool train, double eps,
                     at::Tensor& grad_input, at::Tensor& grad_weight, at::Tensor& grad_bias) {
  ResultsInPlace results({grad_input, grad_weight, grad_bias});
  const auto [of_input, of_weight, of_bias] =
      at::cpu::native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train,
                                          eps, {grad_input.defined(), grad_weight.defined(), grad_bias.defined()});
  results.put({of_input, of_weight, of_bias});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm_backward(
    const at::Tensor& grad, const at::Tensor& input, MaybeTensor weight, MaybeTensor running_mean,
    MaybeTensor running_var, MaybeTensor save_mean, MaybeTensor save_invstd, bool train, double eps,
    std::array<bool, 3> output_mask) {
  constexpr const char* kName = "aten::native_batch_norm_backward";
  const c10::Device device = device_of(kName, grad, input);
  check_same_device(kName, device, grad, input, weight, running_mean, running_var, save_mean, save_invstd);
  const CurrentDevice current(device);
  const auto parameters = statistics_options(input, weight, running_mean, running_var, save_mean, save_invstd);
  at::Tensor grad_input = output_mask[0] ? make_output_in_format_of(input) : at::Tensor();
  at::Tensor grad_weight = output_mask[1] ? make_output({input.size(1)}, {}, parameters) : at::Tensor();
  at::Tensor grad_bias = output_mask[2] ? make_output({input.size(1)}, {}, parameters) : at::Tensor();
  launch_kernel<decltype(&backward_kernel), const at::Tensor&, const at::Tensor&, MaybeTensor, MaybeTensor, MaybeTensor,
                MaybeTensor, MaybeTensor, bool, double, at::Tensor&, at::Tensor&, at::Tensor&>(
      kName, device, &backward_kernel, grad, input, weight, running_mean, running_var, save_mean, save_invstd, train,
      eps, grad_input, grad_weight, grad_bias);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

// Running statistics that are always there, or never.

Tensors native_batch_norm_legit(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, at::Tensor& running_mean,
                                at::Tensor& running_var, bool training, double momentum, double eps) {
  return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

Tensors native_batch_norm_no_stats(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, bool training,
                                   double momentum, double eps) {
  return native_batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

// The `reserve` is for devices whose library wants a workspace back; this one does not.

using WithReserve = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

WithReserve with_reserve(Tensors results) {
  auto& [output, mean, invstd] = results;
  const CurrentDevice current(output.device());
  at::Tensor reserve = make_output({0}, {}, output.options().memory_format(std::nullopt).dtype(at::kByte));
  return {std::move(output), std::move(mean), std::move(invstd), std::move(reserve)};
}

WithReserve batch_norm_with_update(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                                   at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps) {
  return with_reserve(native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps));
}

// PyTorch's form for any device calls a kernel of the CPU.
WithReserve batch_norm_no_update(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                                 MaybeTensor running_mean, MaybeTensor running_var, double momentum, double eps) {
  return with_reserve(native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps));
}

Tensors batch_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                            MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor save_mean,
                            MaybeTensor save_invstd, bool update, double eps, std::array<bool, 3> output_mask,
                            const at::Tensor& /*reserve*/) {
  return native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean, save_invstd, update, eps,
                                    output_mask);
}

// The out forms put the results in their places afterwards.

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> give(const Tensors& results, at::Tensor& output, at::Tensor& mean,
                                                       at::Tensor& invstd) {
  const auto put = [](at::Tensor& place, const at::Tensor& result) {
    resize_out(place, result.sizes(), {}, result.options());
    place.copy_(result);
  };
  put(output, std::get<0>(results));
  if (std::get<1>(results).numel() != 0) {  // without training there are none, and the places stay as they are
    put(mean, std::get<1>(results));
    put(invstd, std::get<2>(results));
  }
  return {output, mean, invstd};
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> native_batch_norm_out(const at::Tensor& input, MaybeTensor weight,
                                                                        MaybeTensor bias, MaybeTensor running_mean,
                                                                        MaybeTensor running_var, bool training,
                                                                        double momentum, double eps, at::Tensor& output,
                                                                        at::Tensor& mean, at::Tensor& invstd) {
  return give(native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps), output, mean,
              invstd);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> native_batch_norm_legit_out(
    const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, at::Tensor& running_mean, at::Tensor& running_var,
    bool training, double momentum, double eps, at::Tensor& output, at::Tensor& mean, at::Tensor& invstd) {
  return give(native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps), output, mean,
              invstd);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> native_batch_norm_no_stats_out(const at::Tensor& input,
                                                                                 MaybeTensor weight, MaybeTensor bias,
                                                                                 bool training, double momentum,
                                                                                 double eps, at::Tensor& output,
                                                                                 at::Tensor& mean, at::Tensor& invstd) {
  return give(native_batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps), output, mean,
              invstd);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_batch_norm", TORCH_FN(native_batch_norm));
  library.impl("native_batch_norm.out", TORCH_FN(native_batch_norm_out));
  library.impl("native_batch_norm_backward", TORCH_FN(native_batch_norm_backward));
  library.impl("_native_batch_norm_legit", TORCH_FN(native_batch_norm_legit));
  library.impl("_native_batch_norm_legit.out", TORCH_FN(native_batch_norm_legit_out));
  library.impl("_native_batch_norm_legit.no_stats", TORCH_FN(native_batch_norm_no_stats));
  library.impl("_native_batch_norm_legit.no_stats_out", TORCH_FN(native_batch_norm_no_stats_out));
  library.impl("_batch_norm_with_update", TORCH_FN(batch_norm_with_update));
  library.impl("_batch_norm_no_update", TORCH_FN(batch_norm_no_update));
  library.impl("batch_norm_backward", TORCH_FN(batch_norm_backward));
}

}  // namespace

}  // namespace openreg::ops
