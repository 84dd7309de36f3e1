// SPDX-License-Identifier: BSD-3-Clause
// Convolution, 1d to 3d and transposed, with backward. PyTorch checks the operands and sends every convolution of a
// PrivateUse1 device to these two operators.
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

#include "common/launch_function.h"
#include "common/results_in_place.h"

namespace openreg::ops {

namespace {

// Channels last when an operand is, as the CPU's convolution answers; but for transposed volumes, which a GPU gives so.
c10::MemoryFormat output_format(const at::Tensor& input, const at::Tensor& weight, bool transposed) {
  if (transposed && input.dim() == 5) {
    return c10::MemoryFormat::Contiguous;
  }
  const c10::MemoryFormat format = input.suggest_memory_format();
  return format == c10::MemoryFormat::Contiguous ? weight.suggest_memory_format() : format;
}

std::vector<int64_t> output_size(const at::Tensor& input, const at::Tensor& weight, c10::IntArrayRef stride,
                                 c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                                 c10::IntArrayRef output_padding, int64_t groups) {
  if (transposed) {
    return at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride, dilation,
                                       groups);
  }
  return at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
}

void convolution_kernel(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                        c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                        c10::IntArrayRef output_padding, int64_t groups, at::Tensor& output) {
  ResultsInPlace results({output});
  results.put({at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)});
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                       c10::IntArrayRef output_padding, int64_t groups) {
  constexpr const char* kName = "aten::convolution_overrideable";
  const c10::Device device = device_of(kName, input, weight, bias);
  check_same_device(kName, device, input, weight, bias);
  const bool one_dtype = !bias.has_value() || !bias->defined() || bias->dtype() == input.dtype();
  TORCH_CHECK(weight.dtype() == input.dtype() && one_dtype, "convolution: input (", input.dtype(), "), weight (",
              weight.dtype(), ") and bias should have the same dtype; convert the operand with .to()");
  const CurrentDevice current(device);
  at::Tensor output =
      make_output(output_size(input, weight, stride, padding, dilation, transposed, output_padding, groups), {},
                  input.options().memory_format(output_format(input, weight, transposed)));
  launch_kernel<decltype(&convolution_kernel), const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                c10::IntArrayRef, c10::IntArrayRef, c10::IntArrayRef, bool, c10::IntArrayRef, int64_t, at::Tensor&>(
      kName, device, &convolution_kernel, input, weight, bias, stride, padding, dilation, transposed, output_padding,
      groups, output);
  return output;
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight, c10::IntArrayRef stride,
                     c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                     c10::IntArrayRef output_padding, int64_t groups, at::Tensor& grad_input, at::Tensor& grad_weight,
                     at::Tensor& grad_bias) {
  const int64_t channels = grad.size(1);
  ResultsInPlace results({grad_input, grad_weight, grad_bias});
  const auto [of_input, of_weight, of_bias] = at::convolution_backward(
      grad, input, weight, c10::IntArrayRef(channels), stride, padding, dilation, transposed, output_padding, groups,
      {grad_input.defined(), grad_weight.defined(), grad_bias.defined()});
  results.put({of_input, of_weight, of_bias});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad, const at::Tensor& input,
                                                                    const at::Tensor& weight, c10::IntArrayRef stride,
                                                                    c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                                                    bool transposed, c10::IntArrayRef output_padding,
                                                                    int64_t groups, std::array<bool, 3> output_mask) {
  constexpr const char* kName = "aten::convolution_backward_overrideable";
  const c10::Device device = device_of(kName, grad, input, weight);
  check_same_device(kName, device, grad, input, weight);
  const CurrentDevice current(device);
  const auto options = input.options().memory_format(output_format(input, weight, transposed));
  at::Tensor grad_input = output_mask[0] ? make_output(input.sizes(), {}, options) : at::Tensor();
  at::Tensor grad_weight = output_mask[1] ? make_output(weight.sizes(), {}, options) : at::Tensor();
  at::Tensor grad_bias =
      output_mask[2] ? make_output({grad.size(1)}, {}, options.memory_format(std::nullopt)) : at::Tensor();
  launch_kernel<decltype(&backward_kernel), const at::Tensor&, const at::Tensor&, const at::Tensor&, c10::IntArrayRef,
                c10::IntArrayRef, c10::IntArrayRef, bool, c10::IntArrayRef, int64_t, at::Tensor&, at::Tensor&,
                at::Tensor&>(kName, device, &backward_kernel, grad, input, weight, stride, padding, dilation,
                             transposed, output_padding, groups, grad_input, grad_weight, grad_bias);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("convolution_overrideable", TORCH_FN(convolution));
  library.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
}

}  // namespace

}  // namespace openreg::ops
