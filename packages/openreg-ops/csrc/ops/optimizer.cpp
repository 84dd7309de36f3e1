// SPDX-License-Identifier: BSD-3-Clause
// Fused optimiser steps, but SGD (raw_sgd.cpp): one launch for all parameters of a group (torch.optim with fused=True).
#include "common/launch_on.h"

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
}
