// SPDX-License-Identifier: BSD-3-Clause
// Layer normalization of nested tensors of strided layout. PyTorch's function checks the operands, allocates the
// outputs, and calls a stub with the buffer as rows. The stub launches PyTorch's CPU kernel.
#include <ATen/native/layer_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include "launch/launch.h"
#include "support/output_redirect.h"

namespace openreg::ops {

namespace {

constexpr Operator kLayerNorm{"aten::native_layer_norm", kFloats};
constexpr Operator kLayerNormBackward{"aten::native_layer_norm_backward"};

// Return an operand as a matrix of `rows` rows, or as a vector. An undefined operand stays undefined.
at::Tensor rows_of(const at::Tensor& tensor, int64_t rows) {
  return tensor.defined() ? tensor.view({rows, -1}) : tensor;
}
at::Tensor row_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.view(-1) : tensor;
}

void layer_norm_kernel(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t rows,
                       double eps, at::Tensor& output, at::Tensor& mean, at::Tensor& rstd) {
  const at::Tensor by_rows = rows_of(input, rows);
  OutputRedirectGuard results({rows_of(output, rows), rows_of(mean, rows), rows_of(rstd, rows)});
  const auto [normalized, means, rstds] =
      at::native_layer_norm(by_rows, by_rows.size(1), row_of(weight), row_of(bias), eps);
  results.put({normalized, means, rstds});
}

// The kernels of the two stubs, which PyTorch calls on the host. The input is the buffer, which has `rows` times
// `width` elements.
void layer_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t rows,
                int64_t /*width*/, double eps, at::Tensor* output, at::Tensor* mean, at::Tensor* rstd) {
  const OperandDeviceGuard device(kLayerNorm, input, weight, bias);
  if (rows > 0) {
    launch(kLayerNorm, device, &layer_norm_kernel, input, weight, bias, rows, eps, *output, *mean, *rstd);
  }
}

void layer_norm_backward_kernel(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                                const at::Tensor& rstd, const at::Tensor& weight, int64_t rows, at::Tensor& grad_input,
                                at::Tensor& grad_weight, at::Tensor& grad_bias) {
  const at::Tensor by_rows = rows_of(input, rows);
  OutputRedirectGuard results({rows_of(grad_input, rows), row_of(grad_weight), row_of(grad_bias)});
  const auto [of_input, of_weight, of_bias] = at::native_layer_norm_backward(
      rows_of(grad, rows), by_rows, by_rows.size(1), rows_of(mean, rows), rows_of(rstd, rows), row_of(weight),
      row_of(weight), {grad_input.defined(), grad_weight.defined(), grad_bias.defined()});
  results.put({of_input, of_weight, of_bias});
}

void layer_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                         const at::Tensor& rstd, const at::Tensor& weight, int64_t rows, int64_t /*width*/,
                         at::Tensor* grad_input, at::Tensor* grad_weight, at::Tensor* grad_bias) {
  const OperandDeviceGuard device(kLayerNormBackward, grad, input, mean, rstd, weight);
  if (rows > 0) {
    launch(kLayerNormBackward, device, &layer_norm_backward_kernel, grad, input, mean, rstd, weight, rows, *grad_input,
           *grad_weight, *grad_bias);
  }
}

}  // namespace

}  // namespace openreg::ops

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(LayerNormKernel, &openreg::ops::layer_norm)
REGISTER_PRIVATEUSE1_DISPATCH(LayerNormBackwardKernel, &openreg::ops::layer_norm_backward)

}  // namespace at::native
