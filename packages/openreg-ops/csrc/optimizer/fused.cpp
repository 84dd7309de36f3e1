// SPDX-License-Identifier: BSD-3-Clause
// Fused optimiser steps, one launch for all parameters of a group (torch.optim with fused=True). That of SGD runs our
// own kernel where OPENREG_KERNELS=raw asks for it; and always for 16-bit floats in a release of PyTorch whose kernel
// for the CPU gets those wrong.
#include <algorithm>

#include "common/raw_operands.h"
#include "common/torch_versions.h"
#include "declare/declare.h"
#include "kernel_choice.h"
#include "kernels/sgd.h"

namespace openreg::ops {

namespace {

bool same_layouts(at::TensorList list, at::TensorList other) {
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) { return a.strides() == b.strides(); };
  return fits(list, other) && std::equal(list.begin(), list.end(), other.begin(), other.end(), alike);
}

// A number of the device that the kernel may read: one float32.
bool is_readable(MaybeTensor number, c10::Device device) {
  return !number.has_value() ||
         (number->numel() == 1 && number->scalar_type() == at::kFloat && number->device() == device);
}

const float* address_of(MaybeTensor number) {
  return number.has_value() ? static_cast<const float*>(kernel_address(*number)) : nullptr;
}

const bool kEveryType = raw_kernels_chosen();

// Whether our own kernel is to run, and not PyTorch's.
bool is_ours(at::ScalarType type) {
  return kEveryType || (OPENREG_TORCH_SGD_SKIPS_16_BITS && at::isReducedFloatingType(type));
}

// Gives false for operands that the kernel does not serve: those that are not laid out alike, or of several dtypes.
bool launch_sgd(at::TensorList self, at::TensorList grads, at::TensorList momenta, raw::SgdArguments arguments,
                MaybeTensor learning_rate, MaybeTensor scale, MaybeTensor found_inf) {
  if (self.empty() || !is_ours(self[0].scalar_type())) {
    return false;
  }
  if (!is_uniform(self) || !same_layouts(self, grads) || !(momenta.empty() || same_layouts(self, momenta))) {
    return false;
  }
  const c10::Device device = self[0].device();
  if (!raw::contains(raw::Floats(), self[0].scalar_type()) || !is_readable(learning_rate, device) ||
      !is_readable(scale, device) || !is_readable(found_inf, device)) {
    return false;
  }
  arguments.type = self[0].scalar_type();
  arguments.learning_rate_address = address_of(learning_rate);
  arguments.scale = address_of(scale);
  arguments.found_inf = address_of(found_inf);
  arguments.parameters.reserve(self.size());
  const bool has_momentum = arguments.momentum != 0 && !momenta.empty();
  for (size_t i = 0; i < self.size(); ++i) {
    arguments.parameters.push_back({mutable_kernel_address(self[i]), mutable_kernel_address(grads[i]),
                                    has_momentum ? mutable_kernel_address(momenta[i]) : nullptr, self[i].numel()});
  }
  launch_raw("aten::_fused_sgd_", device, &raw::sgd, std::move(arguments), updates(self, grads, momenta),
             reads(learning_rate, scale, found_inf));
  return true;
}

raw::SgdArguments numbers(double weight_decay, double momentum, double learning_rate, double dampening, bool nesterov,
                          bool maximize, bool is_first_step) {
  return {.learning_rate = learning_rate,
          .momentum = momentum,
          .dampening = dampening,
          .weight_decay = weight_decay,
          .nesterov = nesterov,
          .maximize = maximize,
          .first_step = is_first_step};
}

const auto kSgd = described_form<unchecked, op::_fused_sgd_>(cpu::_fused_sgd_);
const auto kSgdTensorLr = described_form<unchecked, op::_fused_sgd__tensor_lr>(cpu::_fused_sgd_);

void sgd(at::TensorList self, at::TensorList grads, at::TensorList momenta, double weight_decay, double momentum,
         double lr, double dampening, bool nesterov, bool maximize, bool is_first_step, MaybeTensor grad_scale,
         MaybeTensor found_inf) {
  const auto arguments = numbers(weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step);
  if (!launch_sgd(self, grads, momenta, arguments, std::nullopt, grad_scale, found_inf)) {
    kSgd(self, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale,
         found_inf);
  }
}

void sgd_tensor_lr(at::TensorList self, at::TensorList grads, at::TensorList momenta, double weight_decay,
                   double momentum, const at::Tensor& lr, double dampening, bool nesterov, bool maximize,
                   bool is_first_step, MaybeTensor grad_scale, MaybeTensor found_inf) {
  const bool on_host = lr.device().is_cpu();  // read now: the caller may change it before the kernel runs
  const auto arguments =
      numbers(weight_decay, momentum, on_host ? lr.item<double>() : 0, dampening, nesterov, maximize, is_first_step);
  if (!launch_sgd(self, grads, momenta, arguments, on_host ? std::nullopt : std::optional(lr), grad_scale, found_inf)) {
    kSgdTensorLr(self, grads, momenta, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
                 grad_scale, found_inf);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  described<unchecked, op::_fused_adam_>(library, cpu::_fused_adam_);
  described<unchecked, op::_fused_adam__tensor_lr>(library, cpu::_fused_adam_);
  described<unchecked, op::_fused_adamw_>(library, cpu::_fused_adamw_);
  described<unchecked, op::_fused_adamw__tensor_lr>(library, cpu::_fused_adamw_);
  described<unchecked, op::_fused_adagrad_>(library, cpu::_fused_adagrad_);
  described<unchecked, op::_fused_adagrad__tensor_lr>(library, cpu::_fused_adagrad_);
  function<op::_fused_sgd_>(library, sgd);
  function<op::_fused_sgd__tensor_lr>(library, sgd_tensor_lr);
}

}  // namespace

}  // namespace openreg::ops
