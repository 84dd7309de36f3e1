// SPDX-License-Identifier: BSD-3-Clause
// Root mean square normalisation with backward: what torch.nn.functional.rms_norm runs on a device that has it.
#include <ATen/OpMathType.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include <limits>
#include <numeric>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::toOpMathType(tensor.scalar_type()));
}

// The last `count` dimensions, which are normalised, or those before them.
std::vector<int64_t> dims_of(const at::Tensor& input, int64_t count, bool normalised) {
  std::vector<int64_t> dims(normalised ? count : input.dim() - count);
  std::iota(dims.begin(), dims.end(), normalised ? input.dim() - count : 0);
  return dims;
}

void forward_kernel(const at::Tensor& input, int64_t count, MaybeTensor weight, double eps, at::Tensor& output,
                    at::Tensor& rstd) {
  const at::Tensor x = wide(input);
  const auto elements = static_cast<double>(input.numel()) / static_cast<double>(std::max<int64_t>(rstd.numel(), 1));
  at::linalg_vector_norm_out(rstd, x, 2, dims_of(input, count, true), /*keepdim=*/true);
  rstd.square_().div_(elements).add_(eps).rsqrt_();
  at::Tensor normalised = x.is_same(input) ? output : at::empty_like(x);
  at::mul_out(normalised, x, rstd);
  if (is_given(weight)) {
    normalised.mul_(*weight);
  }
  if (!normalised.is_same(output)) {
    output.copy_(normalised);
  }
}

// PyTorch's formula is for real and complex numbers; this is for real ones, as the fused operators of GPUs are.
void check_operands(const char* name, const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight) {
  at::native::_check_rms_norm_inputs_symint(input, c10::fromIntArrayRefSlow(shape), value_or_undefined(weight));
  const bool is_served =
      (dtype_bit(input.scalar_type()) & kCommonDtypes) != 0 && at::isFloatingType(input.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(is_served, name, ": not implemented for '", input.scalar_type(),
                              "', only for floating-point inputs");
}

std::tuple<at::Tensor, at::Tensor> fused_rms_norm(const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight,
                                                  std::optional<double> eps) {
  constexpr const char* kName = "aten::_fused_rms_norm";
  const c10::Device device = device_of(kName, input, weight);
  check_same_device(kName, device, input, weight);
  check_operands(kName, input, shape, weight);
  const CurrentDevice current(device);
  const auto options = input.options().memory_format(std::nullopt);
  const at::ScalarType wide_type = at::toOpMathType(input.scalar_type());
  const double smallest = wide_type == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                   : static_cast<double>(std::numeric_limits<float>::epsilon());
  std::vector<int64_t> rows = input.sizes().vec();
  std::fill(rows.end() - static_cast<int64_t>(shape.size()), rows.end(), 1);
  at::Tensor output = make_output(input.sizes(), {}, options);
  at::Tensor rstd = make_output(rows, {}, options.dtype(wide_type));
  launch_function(kName, device, &forward_kernel, input, static_cast<int64_t>(shape.size()), weight,
                  eps.value_or(smallest), output, rstd);
  return {std::move(output), std::move(rstd)};
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& input, int64_t count, const at::Tensor& rstd,
                     MaybeTensor weight, at::Tensor& grad_input, at::Tensor& grad_weight) {
  const at::Tensor x = wide(input);
  const at::Tensor of_output = wide(grad);
  if (grad_weight.defined()) {
    const at::Tensor products = at::mul(of_output, x).mul_(rstd);
    const std::vector<int64_t> rows = dims_of(input, count, false);
    grad_weight.copy_(rows.empty() ? products : products.sum(rows));
  }
  if (grad_input.defined()) {
    const auto elements = static_cast<double>(input.numel()) / static_cast<double>(std::max<int64_t>(rstd.numel(), 1));
    const at::Tensor of_normalised = is_given(weight) ? at::mul(of_output, *weight) : of_output;
    at::Tensor slope = at::mul(of_normalised, x).sum(dims_of(input, count, true), /*keepdim=*/true);
    slope.mul_(rstd).mul_(rstd).div_(-elements);
    grad_input.copy_(at::mul(x, slope).add_(of_normalised).mul_(rstd));
  }
}

std::tuple<at::Tensor, at::Tensor> fused_rms_norm_backward(const at::Tensor& grad, const at::Tensor& input,
                                                           c10::IntArrayRef shape, const at::Tensor& rstd,
                                                           MaybeTensor weight, std::array<bool, 2> wanted) {
  constexpr const char* kName = "aten::_fused_rms_norm_backward";
  const c10::Device device = device_of(kName, grad, input);
  check_same_device(kName, device, grad, input, rstd, weight);
  check_operands(kName, input, shape, weight);
  const CurrentDevice current(device);
  const auto options = input.options().memory_format(std::nullopt);
  at::Tensor grad_input = output_if(wanted[0], input.sizes(), options);
  at::Tensor grad_weight;
  if (is_given(weight)) {
    grad_weight = output_if(wanted[1], shape, weight->options().memory_format(std::nullopt));
  }
  launch_function(kName, device, &backward_kernel, grad, input, static_cast<int64_t>(shape.size()), rstd, weight,
                  grad_input, grad_weight);
  return {std::move(grad_input), std::move(grad_weight)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_fused_rms_norm", TORCH_FN(fused_rms_norm));
  library.impl("_fused_rms_norm_backward", TORCH_FN(fused_rms_norm_backward));
}

}  // namespace

}  // namespace openreg::ops
