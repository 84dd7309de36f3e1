// SPDX-License-Identifier: BSD-3-Clause
// Gradient scaling, as torch.amp.GradScaler uses it: gradients lose the scale and are searched for infinities and nan,
// and the scale is adapted to what was found, in two launches that nothing waits for. Arguments are checked on the
// host: in a kernel, a wrong one would put the device into its error state.
#include "common/launch_on.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_cpu_dispatch.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_ops.h>
#include <ATen/ops/_amp_update_scale_cpu_dispatch.h>
#include <ATen/ops/_amp_update_scale_ops.h>

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

// `found_inf` becomes 1 where a gradient is not finite, else it stays as it is.
void unscale(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inverse_scale) {
  using Operator = at::_ops::_amp_foreach_non_finite_check_and_unscale_;
  const c10::Device device = device_of(Operator::name, gradients, found_inf, inverse_scale);
  check_same_device(Operator::name, device, gradients, found_inf, inverse_scale);
  check_one_element(Operator::name, "found_inf", found_inf, at::kFloat);
  check_one_element(Operator::name, "inv_scale", inverse_scale, at::kFloat);
  for (const at::Tensor& gradient : gradients) {
    TORCH_CHECK(is_gradient_type(gradient.scalar_type()), Operator::name, " on ", device, ": a gradient has the type ",
                gradient.scalar_type(), "; cast it to float16, bfloat16, float32 or float64.");
  }
  InplaceLaunch<Operator>::call<at::cpu::_amp_foreach_non_finite_check_and_unscale_>(gradients, found_inf,
                                                                                     inverse_scale);
}

at::Tensor& update_scale(at::Tensor& scale, at::Tensor& growth_tracker, const at::Tensor& found_inf, double growth,
                         double backoff, int64_t interval) {
  using Operator = at::_ops::_amp_update_scale_;
  const c10::Device device = device_of(Operator::name, scale, growth_tracker, found_inf);
  check_same_device(Operator::name, device, scale, growth_tracker, found_inf);
  check_one_element(Operator::name, "the scale", scale, at::kFloat);
  check_one_element(Operator::name, "growth_tracker", growth_tracker, at::kInt);
  check_one_element(Operator::name, "found_inf", found_inf, at::kFloat);
  return InplaceLaunch<Operator>::call<at::cpu::_amp_update_scale_>(scale, growth_tracker, found_inf, growth, backoff,
                                                                    interval);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(unscale));
  library.impl("_amp_update_scale_", TORCH_FN(update_scale));
}

}  // namespace

}  // namespace openreg::ops
