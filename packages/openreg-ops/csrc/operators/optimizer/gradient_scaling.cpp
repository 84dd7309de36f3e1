// SPDX-License-Identifier: BSD-3-Clause
// Gradient scaling for torch.amp.GradScaler, in two launches for which the host does not block. The first unscales
// gradients and searches them for infinities and NaN. The second adapts the scale to the result. The host checks the
// arguments, because an exception of a kernel would become the device's sticky error.
#include "registration/declare.h"

namespace openreg::ops {

namespace {

void check_one_element(const char* op, const char* argument, const at::Tensor& tensor, c10::ScalarType dtype) {
  TORCH_CHECK(tensor.numel() == 1 && tensor.scalar_type() == dtype, op, " on ", tensor.device(), ": ", argument,
              " must be a tensor of one element of type ", dtype, ", but it has shape ", tensor.sizes(), " and type ",
              tensor.scalar_type(), ". torch.amp.GradScaler(\"openreg\") passes such tensors.");
}

bool is_gradient_type(c10::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16;
}

void check_unscale(at::TensorList gradients, const at::Tensor& found_inf, const at::Tensor& inverse_scale) {
  constexpr const char* kName = op::_amp_foreach_non_finite_check_and_unscale_::name;
  const OperandDeviceGuard device({kName}, gradients, found_inf, inverse_scale);  // also checks the device of numbers
  check_one_element(kName, "found_inf", found_inf, at::kFloat);
  check_one_element(kName, "inv_scale", inverse_scale, at::kFloat);
  for (const at::Tensor& gradient : gradients) {
    TORCH_CHECK(is_gradient_type(gradient.scalar_type()), kName, " on ", c10::Device(device),
                ": a gradient has the type ", gradient.scalar_type(),
                "; cast it to float16, bfloat16, float32 or float64.");
    TORCH_CHECK(at::has_internal_overlap(gradient) != at::MemOverlap::Yes, kName, " on ", c10::Device(device),
                ": a gradient has the shape ", gradient.sizes(), " and the strides ", gradient.strides(),
                ", so that several elements share one number, which can be unscaled only once; clone() it.");
  }
}

void check_update(const at::Tensor& scale, const at::Tensor& growth_tracker, const at::Tensor& found_inf,
                  double /*growth*/, double /*backoff*/, int64_t /*interval*/) {
  constexpr const char* kName = op::_amp_update_scale_::name;
  const OperandDeviceGuard device({kName}, scale, growth_tracker, found_inf);
  check_one_element(kName, "the scale", scale, at::kFloat);
  check_one_element(kName, "growth_tracker", growth_tracker, at::kInt);
  check_one_element(kName, "found_inf", found_inf, at::kFloat);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // `found_inf` becomes 1 if a gradient is not finite, and otherwise stays unchanged.
  unstructured<check_unscale, op::_amp_foreach_non_finite_check_and_unscale_>(
      library, cpu::_amp_foreach_non_finite_check_and_unscale_);
  unstructured<check_update, op::_amp_update_scale_>(library, cpu::_amp_update_scale_);
}

}  // namespace

}  // namespace openreg::ops
