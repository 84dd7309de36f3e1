// SPDX-License-Identifier: BSD-3-Clause
// The custom operator openreg::add_rms_norm, defined as in mechanisms/custom_operator.cpp, but launched by the short
// form. mechanisms/autograd_function.cpp makes it differentiable through torch::autograd::Function. One launch computes
// what is between two blocks of many transformers: sum = input + residual, output = sum / rms(sum) * weight. The root
// mean square (rms) is over the last dimension.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "kernels/add_rms_norm.h"
#include "launch/launch.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

constexpr Operator kAddRmsNorm{"openreg::add_rms_norm"};
constexpr Operator kAddRmsNormBackward{"openreg::add_rms_norm_backward"};

void check_operands(const Operator& op, const at::Tensor& first, const at::Tensor& second, const at::Tensor& weight) {
  const c10::ScalarType dtype = first.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16, op.name,
              ": expected float, double, half or bfloat16 tensors, but got ", dtype);
  TORCH_CHECK(second.scalar_type() == dtype && weight.scalar_type() == dtype, op.name,
              ": expected operands of one dtype, but got ", dtype, ", ", second.scalar_type(), " and ",
              weight.scalar_type());
  TORCH_CHECK(first.dim() > 0 && second.sym_sizes() == first.sym_sizes(), op.name,
              ": expected two operands of one shape with at least one dimension, but got ", first.sym_sizes(), " and ",
              second.sym_sizes());
  TORCH_CHECK(weight.dim() == 1 && weight.sym_size(0) == first.sym_size(-1), op.name, ": expected a weight of shape [",
              first.sym_size(-1), "], but got ", weight.sym_sizes());
}

Pair add_rms_norm(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const OperandDeviceGuard device(kAddRmsNorm, input, residual, weight);
  check_operands(kAddRmsNorm, input, residual, weight);
  at::Tensor output = make_output(input.sizes(), {}, input.options());
  at::Tensor sum = make_output(input.sizes(), {}, input.options());
  if (input.numel() > 0) {
    launch(kAddRmsNorm, device, &kernels::add_rms_norm, input.contiguous(), residual.contiguous(), weight.contiguous(),
           eps, output, sum);
  }
  return {std::move(output), std::move(sum)};
}

Pair add_rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                           const at::Tensor& weight, double eps) {
  const OperandDeviceGuard device(kAddRmsNormBackward, sum, grad_output, grad_sum, weight);
  check_operands(kAddRmsNormBackward, sum, grad_output, weight);
  check_operands(kAddRmsNormBackward, sum, grad_sum, weight);
  at::Tensor grad_input = make_output(sum.sizes(), {}, sum.options());
  at::Tensor grad_weight = make_output(weight.sizes(), {}, weight.options());
  if (sum.numel() == 0) {
    return {std::move(grad_input), grad_weight.zero_()};
  }
  launch(kAddRmsNormBackward, device, &kernels::add_rms_norm_backward, grad_output.contiguous(), grad_sum.contiguous(),
         sum.contiguous(), weight.contiguous(), eps, grad_input, grad_weight);
  return {std::move(grad_input), std::move(grad_weight)};
}

Pair add_rms_norm_meta(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double /*eps*/) {
  check_operands(kAddRmsNorm, input, residual, weight);
  return {at::empty_symint(input.sym_sizes(), input.options()), at::empty_symint(input.sym_sizes(), input.options())};
}

Pair add_rms_norm_backward_meta(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                                const at::Tensor& weight, double /*eps*/) {
  check_operands(kAddRmsNormBackward, sum, grad_output, weight);
  check_operands(kAddRmsNormBackward, sum, grad_sum, weight);
  return {at::empty_symint(sum.sym_sizes(), sum.options()), at::empty_symint(weight.sym_sizes(), weight.options())};
}

TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("add_rms_norm(Tensor input, Tensor residual, Tensor weight, float eps=1e-06) -> (Tensor, Tensor)",
              {at::Tag::pt2_compliant_tag});
  library.def(
      "add_rms_norm_backward(Tensor grad_output, Tensor grad_sum, Tensor sum, Tensor weight, float eps) "
      "-> (Tensor, Tensor)",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(openreg, PrivateUse1, library) {
  library.impl("add_rms_norm", TORCH_FN(add_rms_norm));
  library.impl("add_rms_norm_backward", TORCH_FN(add_rms_norm_backward));
}

TORCH_LIBRARY_IMPL(openreg, Meta, library) {
  library.impl("add_rms_norm", TORCH_FN(add_rms_norm_meta));
  library.impl("add_rms_norm_backward", TORCH_FN(add_rms_norm_backward_meta));
}

}  // namespace

}  // namespace openreg::ops
