// SPDX-License-Identifier: BSD-3-Clause
// Dropout, with one launch for the mask and the scaled operand.
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/result_type.h>

#include "kernels/distributions.h"
#include "registration/declare.h"
#include "support/random.h"

namespace openreg::ops {

namespace {

constexpr Operator kDropout{"aten::native_dropout", kChecked};
constexpr Operator kDropoutBackward{"aten::native_dropout_backward", kChecked};

void dropout_kernel(const at::Tensor& input, at::Tensor& output, at::Tensor& mask, double keep,
                    runtime::PhiloxState state) {
  kernels::bernoulli(mask, state, keep);
  at::mul_out(output, input, mask);
  output.mul_(keep == 0 ? 0.0 : 1.0 / keep);
}

// Returns the output, and the mask of the elements that are kept.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const OperandDeviceGuard device(kDropout, input);
  const auto mask_options = input.options().dtype(at::kBool);
  if (!train.value_or(true) || input.numel() == 0) {
    return {input.clone(), at::ones_like(input, mask_options)};
  }
  const c10::ScalarType dtype = input.scalar_type();
  const bool is_supported = (dtype_bit(dtype) & kCommonDtypes) != 0 || is_reduced_complex(dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(is_supported, '"', kDropout.name, "\" not implemented for '", dtype,
                              "'; convert the input with .to(dtype)");
  TORCH_CHECK(c10::canCast(at::kFloat, dtype), kDropout.name, ": the elements are scaled by 1 / (1 - p), which ", dtype,
              " cannot hold; convert the input with .to(dtype)");
  at::Tensor output = make_output_like(input);
  at::Tensor mask = make_output_like(input, at::kBool);
  launch(kDropout, device, &dropout_kernel, input, output, mask, 1 - p,
         reserve_random(std::nullopt, device.index(), input.numel()));
  return {std::move(output), std::move(mask)};
}

void dropout_backward_kernel(const at::Tensor& grad, const at::Tensor& mask, double scale, at::Tensor& result) {
  if (at::isFloatingType(grad.scalar_type()) || grad.is_complex()) {
    at::mul_out(result, grad, mask);
    result.mul_(scale);
  } else {
    result.copy_(grad.mul(mask.to(result.scalar_type()).mul_(scale)));
  }
}

at::Tensor native_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  const OperandDeviceGuard device(kDropoutBackward, grad, mask);
  TORCH_CHECK(mask.scalar_type() == at::kBool, kDropoutBackward.name, ": Mask should be Bool Scalar Type, but is ",
              mask.scalar_type());
  // A scaled integer is a floating-point number.
  const c10::ScalarType dtype = at::result_type(grad, at::Scalar(scale));
  // The product has the order of strides of its first dense operand. That is the mask if the gradient is expanded, as
  // that of a sum is.
  const c10::DimVector sizes = at::infer_size_dimvector(grad.sizes(), mask.sizes());
  at::Tensor result = grad.sizes() == sizes && mask.sizes() == sizes
                          ? make_output_like(grad.is_non_overlapping_and_dense() ? grad : mask, dtype)
                          : make_output(sizes, {}, grad.options().dtype(dtype).memory_format(std::nullopt));
  launch(kDropoutBackward, device, &dropout_backward_kernel, grad, mask, scale, result);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::native_dropout>(library, native_dropout);
  function<op::native_dropout_backward>(library, native_dropout_backward);
}

}  // namespace

}  // namespace openreg::ops
