// SPDX-License-Identifier: BSD-3-Clause
// Convolution in one to three dimensions, also transposed, with backward. PyTorch checks the operands and forwards
// every convolution on a PrivateUse1 device to these two operators.
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns the memory format of the output. It is channels-last if an operand is, as on the CPU. Transposed volumes are
// always contiguous, as on a GPU.
c10::MemoryFormat output_format(const at::Tensor& input, const at::Tensor& weight, bool transposed) {
  if (transposed && input.dim() == 5) {
    return c10::MemoryFormat::Contiguous;
  }
  const c10::MemoryFormat format = input.suggest_memory_format();
  return format == c10::MemoryFormat::Contiguous ? weight.suggest_memory_format() : format;
}

OutputSpec meta_convolution(const at::Tensor& input, const at::Tensor& weight, MaybeTensor bias,
                            c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                            bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(weight.dtype() == input.dtype() && (!is_given(bias) || bias->dtype() == input.dtype()),
              "convolution: input (", input.dtype(), "), weight (", weight.dtype(),
              ") and bias should have the same dtype; convert the operand with .to()");
  for (int64_t i = 2; i < weight.dim(); ++i) {
    TORCH_CHECK(weight.size(i) > 0, "convolution: kernel size should be greater than zero, but got a weight of shape ",
                weight.sizes());
  }
  const std::vector<int64_t> sizes =
      transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride, dilation,
                                               groups)
                 : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  OutputSpec spec = output_of(sizes, input.scalar_type());
  spec.format = output_format(input, weight, transposed);
  return spec;
}

std::array<OutputSpec, 3> meta_convolution_backward(const at::Tensor& grad, const at::Tensor& input,
                                                    const at::Tensor& weight, c10::IntArrayRef stride,
                                                    c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                                    bool transposed, c10::IntArrayRef output_padding, int64_t groups,
                                                    std::array<bool, 3> wanted) {
  constexpr const char* kName = op::convolution_backward_overrideable::name;
  expect_dim(kName, "weight", weight, input.dim());
  const int64_t channels = transposed ? weight.size(0) : weight.size(1) * groups;
  TORCH_CHECK(input.dim() >= 3 && input.size(1) == channels, kName, ": expected an input with ", channels,
              " channels, as the weight of shape ", weight.sizes(), " has in ", groups, " groups, but got the shape ",
              input.sizes());
  const OutputSpec output =
      meta_convolution(input, weight, {}, stride, padding, dilation, transposed, output_padding, groups);
  expect(kName, "grad_output", grad, output.sizes, output.dtype);
  const auto spec_if = [&](bool is_wanted, c10::IntArrayRef sizes, c10::MemoryFormat format) {
    OutputSpec spec = is_wanted ? output_of(sizes, input.scalar_type()) : OutputSpec();
    spec.format = format;
    return spec;
  };
  const c10::MemoryFormat format = output_format(input, weight, transposed);
  return {spec_if(wanted[0], input.sizes(), format), spec_if(wanted[1], weight.sizes(), format),
          spec_if(wanted[2], {grad.size(1)}, c10::MemoryFormat::Contiguous)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad, const at::Tensor& input,
                                                                    const at::Tensor& weight, c10::IntArrayRef stride,
                                                                    c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                                                    bool transposed, c10::IntArrayRef output_padding,
                                                                    int64_t groups, std::array<bool, 3> wanted) {
  return at::convolution_backward(grad, input, weight, c10::IntArrayRef(grad.size(1)), stride, padding, dilation,
                                  transposed, output_padding, groups, wanted);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_convolution, op::convolution_overrideable>(library, at::convolution,
                                                               {.refused = kBoolean | kIntegers});
  unstructured<meta_convolution_backward, op::convolution_backward_overrideable>(
      library, convolution_backward, {.refused = kBoolean | kIntegers | kComplex});
}

}  // namespace

}  // namespace openreg::ops
