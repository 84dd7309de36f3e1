// SPDX-License-Identifier: BSD-3-Clause
// An override of a composite operator that has a derivative. PyTorch composes linear of views and a product, each with
// its own autograd node and its own backward launches. With a kernel for PrivateUse1 the operator is one node, whose
// derivative is aten::linear_backward: 1 launch backward instead of 3.
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

constexpr Operator kLinear{"aten::linear", {.refused = kBoolean, .checked = true}};
constexpr Operator kLinearBackward{"aten::linear_backward", {.refused = kBoolean, .checked = true}};

// Returns true if the kernel supports the operands. Others go to PyTorch's composite, which throws if they are wrong,
// or supports them.
bool is_supported(const at::Tensor& input, const at::Tensor& weight, MaybeTensor bias) {
  const auto alike = [&](const at::Tensor& tensor) {
    return tensor.device() == input.device() && tensor.scalar_type() == input.scalar_type();
  };
  return input.dim() >= 2 && weight.dim() == 2 && alike(weight) && input.size(-1) == weight.size(1) &&
         (!is_given(bias) || (alike(*bias) && bias->dim() == 1 && bias->size(0) == weight.size(0)));
}

at::Tensor as_rows(const at::Tensor& tensor) {
  return tensor.reshape({c10::multiply_integers(tensor.sizes().slice(0, tensor.dim() - 1)), tensor.size(-1)});
}

void forward_kernel(const at::Tensor& input, const at::Tensor& weight, MaybeTensor bias, at::Tensor& output) {
  at::Tensor rows = output.view({-1, weight.size(0)});
  if (is_given(bias)) {
    at::addmm_out(rows, *bias, as_rows(input), weight.t());
  } else {
    at::mm_out(rows, as_rows(input), weight.t());
  }
}

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, MaybeTensor bias) {
  // PyTorch's product checks this only in its kernel, which runs too late to throw on the calling line.
  TORCH_CHECK(weight.scalar_type() == input.scalar_type(), "mat1 and mat2 must have the same dtype, but got ",
              input.scalar_type(), " and ", weight.scalar_type());
  if (!is_supported(input, weight, bias) || input.numel() == 0 || weight.numel() == 0) {
    return at::native::linear(input, weight, bias);
  }
  const CurrentDeviceGuard current(input.device());
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  at::Tensor output = make_output(sizes, {}, input.options());
  launch(kLinear, input.device(), &forward_kernel, input, weight, bias, output);
  return output;
}

void backward_kernel(const at::Tensor& input, const at::Tensor& grad, const at::Tensor& weight, at::Tensor& grad_input,
                     at::Tensor& grad_weight, at::Tensor& grad_bias) {
  const at::Tensor rows = as_rows(grad);
  if (grad_input.defined()) {
    at::Tensor result = grad_input.view({rows.size(0), weight.size(1)});
    at::mm_out(result, rows, weight.conj());
  }
  if (grad_weight.defined()) {
    at::mm_out(grad_weight, rows.t(), as_rows(input).conj());
  }
  if (grad_bias.defined()) {
    at::sum_out(grad_bias, rows, 0);
  }
}

// Returns a new gradient of the input. It is column-major if the input is a column-major matrix, as in PyTorch's
// product.
at::Tensor make_like_input(const at::Tensor& input) {
  const bool by_columns = input.dim() == 2 && input.stride(0) == 1 && input.stride(1) == input.size(0);
  return make_output(input.sizes(), by_columns ? input.strides() : c10::IntArrayRef(), input.options());
}

// Returns a new gradient of the weight. It is column-major unless the weight is contiguous, as in PyTorch's product.
at::Tensor make_like_weight(const at::Tensor& weight) {
  const bool by_rows = weight.stride(1) == 1 && weight.stride(0) == weight.size(1);
  const c10::DimVector by_columns{1, weight.size(0)};
  return make_output(weight.sizes(), by_rows ? c10::IntArrayRef() : c10::IntArrayRef(by_columns), weight.options());
}

void check_backward(const at::Tensor& input, const at::Tensor& grad, const at::Tensor& weight) {
  expect_dim(kLinearBackward.name, "weight", weight, 2);
  TORCH_CHECK(input.dim() > 0 && input.size(-1) == weight.size(1), kLinearBackward.name, ": expected an input with ",
              weight.size(1), " features, as the weight of shape ", weight.sizes(), " has, but got the shape ",
              input.sizes());
  c10::DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  expect(kLinearBackward.name, "grad_output", grad, sizes, input.scalar_type());
  expect(kLinearBackward.name, "weight", weight, weight.sizes(), input.scalar_type());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_backward(const at::Tensor& input, const at::Tensor& grad,
                                                               const at::Tensor& weight, std::array<bool, 3> mask) {
  const OperandDeviceGuard device(kLinearBackward, input, grad, weight);
  if (weight.dim() == 1) {
    // A vector is treated as a matrix of one row. The output lacks the last dimension then, so the gradient gets it
    // here.
    expect(kLinearBackward.name, "grad_output", grad, input.sizes().slice(0, static_cast<size_t>(input.dim()) - 1),
           input.scalar_type());
    auto [grad_input, grad_weight, grad_bias] = linear_backward(input, grad.unsqueeze(-1), weight.unsqueeze(0), mask);
    return {grad_input, mask[1] ? grad_weight.squeeze(0) : grad_weight, mask[2] ? grad_bias.squeeze(0) : grad_bias};
  }
  check_backward(input, grad, weight);
  at::Tensor grad_input = mask[0] ? make_like_input(input) : at::Tensor();
  at::Tensor grad_weight = mask[1] ? make_like_weight(weight) : at::Tensor();
  at::Tensor grad_bias = output_if(mask[2], {weight.size(0)}, weight.options());
  launch(kLinearBackward, device, &backward_kernel, input, grad, weight, grad_input, grad_weight, grad_bias);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::linear>(library, linear, kLinear.traits);
  function<op::linear_backward>(library, linear_backward, kLinearBackward.traits);
}

}  // namespace

}  // namespace openreg::ops
