// SPDX-License-Identifier: BSD-3-Clause
// Fused optimiser steps, but SGD (raw_sgd.cpp): one launch for all parameters of a group (torch.optim with fused=True),
// and gradient scaling.
#include "common/launch_on.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_cpu_dispatch.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_ops.h>
#include <ATen/ops/_amp_update_scale_cpu_dispatch.h>
#include <ATen/ops/_amp_update_scale_ops.h>
#include <ATen/ops/_fused_adagrad_cpu_dispatch.h>
#include <ATen/ops/_fused_adagrad_ops.h>
#include <ATen/ops/_fused_adam_cpu_dispatch.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_cpu_dispatch.h>
#include <ATen/ops/_fused_adamw_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_INPLACE(library, _fused_adam_, at::cpu::_fused_adam_);
  OPENREG_INPLACE(library, _fused_adam__tensor_lr, at::cpu::_fused_adam_);
  OPENREG_INPLACE(library, _fused_adamw_, at::cpu::_fused_adamw_);
  OPENREG_INPLACE(library, _fused_adamw__tensor_lr, at::cpu::_fused_adamw_);
  OPENREG_INPLACE(library, _fused_adagrad_, at::cpu::_fused_adagrad_);
  OPENREG_INPLACE(library, _amp_foreach_non_finite_check_and_unscale_,
                  at::cpu::_amp_foreach_non_finite_check_and_unscale_);
  OPENREG_INPLACE(library, _amp_update_scale_, at::cpu::_amp_update_scale_);
}
