// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: softmax and losses, with their derivatives.
#include "common/structured.h"

#include <ATen/ops/_log_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_cpu_dispatch.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_cpu_dispatch.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/_softmax_meta.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/mse_loss_cpu_dispatch.h>
#include <ATen/ops/mse_loss_meta.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/nll_loss_backward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_cpu_dispatch.h>
#include <ATen/ops/nll_loss_forward_meta.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/smooth_l1_loss_cpu_dispatch.h>
#include <ATen/ops/smooth_l1_loss_meta.h>
#include <ATen/ops/smooth_l1_loss_ops.h>

#include "kernel_choice.h"

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using openreg::ops::raw_kernels_chosen;

  OPENREG_STRUCTURED(library, _log_softmax, _log_softmax_out, _log_softmax)
  OPENREG_STRUCTURED(library, _log_softmax_backward_data, _log_softmax_backward_data_out, _log_softmax_backward_data)
  if (!raw_kernels_chosen()) {
    OPENREG_STRUCTURED(library, _softmax, _softmax_out, _softmax)
    OPENREG_STRUCTURED(library, _softmax_backward_data, _softmax_backward_data_out, _softmax_backward_data)
  }
  OPENREG_STRUCTURED(library, mse_loss, mse_loss_out, mse_loss)
  OPENREG_STRUCTURED(library, nll_loss_backward, nll_loss_backward_grad_input, nll_loss_backward)
  OPENREG_STRUCTURED(library, nll_loss_forward, nll_loss_forward_output, nll_loss_forward)
  OPENREG_STRUCTURED(library, smooth_l1_loss, smooth_l1_loss_out, smooth_l1_loss)
}
