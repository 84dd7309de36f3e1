// SPDX-License-Identifier: BSD-3-Clause
// Layer normalization and RMS normalization, with backward. torch.nn.functional.rms_norm calls the fused operator on a
// device that has it.
#include <ATen/OpMathType.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <limits>
#include <numeric>

#include "launch/derivative.h"
#include "operators/normalization/statistics.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Returns the sizes of a statistic, which has one number for each normalized row.
std::vector<int64_t> rows_of(const at::Tensor& input, c10::IntArrayRef shape) {
  std::vector<int64_t> rows = input.sizes().vec();
  std::fill(rows.end() - static_cast<int64_t>(shape.size()), rows.end(), 1);
  return rows;
}

OutputSpec gradient_of(bool wanted, MaybeTensor operand) {
  return wanted && is_given(operand) ? output_of_shape(*operand) : OutputSpec();
}

std::array<OutputSpec, 3> meta_layer_norm(const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight,
                                          MaybeTensor bias, double /*eps*/) {
  at::native::_check_layer_norm_inputs(input, shape, value_or_undefined(weight), value_or_undefined(bias));
  const OutputSpec statistics = output_of(rows_of(input, shape), statistics_type(input, weight, bias));
  return {output_of_shape(input), statistics, statistics};
}

std::array<OutputSpec, 3> meta_layer_norm_backward(const at::Tensor& grad, const at::Tensor& input,
                                                   c10::IntArrayRef shape, const at::Tensor& mean,
                                                   const at::Tensor& rstd, MaybeTensor weight, MaybeTensor bias,
                                                   std::array<bool, 3> wanted) {
  constexpr const char* kName = op::native_layer_norm_backward::name;
  at::native::_check_layer_norm_inputs(input, shape, value_or_undefined(weight), value_or_undefined(bias));
  const int64_t rows = c10::multiply_integers(rows_of(input, shape));
  const c10::ScalarType of_statistics = statistics_type(input, weight, bias);
  expect_like(kName, "grad_out", grad, input);
  expect_count(kName, "mean", mean, rows, of_statistics);
  expect_count(kName, "rstd", rstd, rows, of_statistics);
  return {gradient_of(wanted[0], input), gradient_of(wanted[1], weight), gradient_of(wanted[2], bias)};
}

Triple layer_norm_backward(const at::Tensor& grad, const at::Tensor& input, c10::IntArrayRef shape,
                           const at::Tensor& mean, const at::Tensor& rstd, MaybeTensor weight, MaybeTensor bias,
                           std::array<bool, 3> wanted) {
  return cpu::native_layer_norm_backward(grad, input, shape, mean, rstd, weight, bias,
                                         {wanted[0], wanted[1] && is_given(weight), wanted[2] && is_given(bias)});
}

// Returns the last dimensions if `normalized`, which are those of `shape`, or else the dimensions before them.
std::vector<int64_t> dims_of(const at::Tensor& input, c10::IntArrayRef shape, bool normalized) {
  const auto count = static_cast<int64_t>(shape.size());
  std::vector<int64_t> dims(normalized ? count : input.dim() - count);
  std::iota(dims.begin(), dims.end(), normalized ? input.dim() - count : 0);
  return dims;
}

double elements_in_row(const at::Tensor& input, const at::Tensor& rstd) {
  return static_cast<double>(input.numel()) / static_cast<double>(std::max<int64_t>(rstd.numel(), 1));
}

// Throws c10::Error for wrong operands. Complex numbers are among them, in the input and in the weight, because the
// kernel is for real ones, as the fused operators of GPUs are. PyTorch's formula is for both.
void check_rms_norm(const char* name, const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight) {
  at::native::_check_rms_norm_inputs_symint(input, c10::fromIntArrayRefSlow(shape), value_or_undefined(weight));
  TORCH_CHECK_NOT_IMPLEMENTED((dtype_bit(input.scalar_type()) & kFloating) != 0, name, ": not implemented for '",
                              input.scalar_type(), "', only for floating-point inputs");
  TORCH_CHECK_NOT_IMPLEMENTED(!is_given(weight) || !weight->is_complex(), name, ": not implemented for a weight of '",
                              weight->scalar_type(), "', only for real numbers");
}

std::array<OutputSpec, 2> meta_rms_norm(const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight,
                                        std::optional<double> /*eps*/) {
  check_rms_norm(op::_fused_rms_norm::name, input, shape, weight);
  return {output_of_shape(input), output_of(rows_of(input, shape), at::toOpMathType(input.scalar_type()))};
}

Pair rms_norm(const at::Tensor& input, c10::IntArrayRef shape, MaybeTensor weight, std::optional<double> eps) {
  const at::Tensor x = wide(input);
  const double smallest = x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                         : static_cast<double>(std::numeric_limits<float>::epsilon());
  // at::empty() returns the outputs themselves (support/output_redirect.h), unless the output has another dtype.
  at::Tensor normalized = at::empty(x.sizes(), x.options());
  at::Tensor rstd = at::empty(rows_of(input, shape), x.options());
  at::linalg_vector_norm_out(rstd, x, 2, dims_of(input, shape, true), /*keepdim=*/true);
  rstd.square_().div_(elements_in_row(input, rstd)).add_(eps.value_or(smallest)).rsqrt_();
  at::mul_out(normalized, x, rstd);
  if (is_given(weight)) {
    normalized.mul_(*weight);
  }
  return {normalized.to(input.scalar_type()), rstd};
}

std::array<OutputSpec, 2> meta_rms_norm_backward(const at::Tensor& grad, const at::Tensor& input,
                                                 c10::IntArrayRef shape, const at::Tensor& rstd, MaybeTensor weight,
                                                 std::array<bool, 2> wanted) {
  constexpr const char* kName = op::_fused_rms_norm_backward::name;
  check_rms_norm(kName, input, shape, weight);
  expect_like(kName, "grad_out", grad, input);
  expect(kName, "rstd", rstd, rows_of(input, shape), at::toOpMathType(input.scalar_type()));
  return {gradient_of(wanted[0], input), gradient_of(wanted[1], weight)};
}

Pair rms_norm_backward(const at::Tensor& grad, const at::Tensor& input, c10::IntArrayRef shape, const at::Tensor& rstd,
                       MaybeTensor weight, std::array<bool, 2> wanted) {
  const at::Tensor x = wide(input);
  const at::Tensor of_output = wide(grad);
  Pair gradients;
  if (wanted[1] && is_given(weight)) {
    const at::Tensor products = at::mul(of_output, x).mul_(rstd);
    const std::vector<int64_t> rows = dims_of(input, shape, false);
    std::get<1>(gradients) = (rows.empty() ? products : products.sum(rows)).to(weight->scalar_type());
  }
  if (wanted[0]) {
    const at::Tensor of_normalized = is_given(weight) ? at::mul(of_output, *weight) : of_output;
    at::Tensor slope = at::mul(of_normalized, x).sum(dims_of(input, shape, true), /*keepdim=*/true);
    slope.mul_(rstd).mul_(rstd).div_(-elements_in_row(input, rstd));
    std::get<0>(gradients) = at::mul(x, slope).add_(of_normalized).mul_(rstd).to(input.scalar_type());
  }
  return gradients;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_layer_norm, op::native_layer_norm>(library, cpu::native_layer_norm, checked(kFloats));
  unstructured<meta_layer_norm_backward, op::native_layer_norm_backward>(library, layer_norm_backward,
                                                                         checked(kFloats));
  unstructured<meta_rms_norm, op::_fused_rms_norm>(library, rms_norm, kChecked);
  unstructured<meta_rms_norm_backward, op::_fused_rms_norm_backward>(library, rms_norm_backward, kChecked);
}

}  // namespace

}  // namespace openreg::ops
