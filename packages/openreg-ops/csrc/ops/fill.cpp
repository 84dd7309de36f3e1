// SPDX-License-Identifier: BSD-3-Clause
// Filling tensors in place, everywhere or under a mask.
#include "common/launch_on.h"

#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/zero_cpu_dispatch.h>
#include <ATen/ops/zero_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_INPLACE(library, fill__Scalar, at::cpu::fill_);
  OPENREG_INPLACE(library, fill__Tensor, at::cpu::fill_);
  OPENREG_INPLACE(library, zero_, at::cpu::zero_);
  OPENREG_INPLACE(library, masked_fill__Scalar, at::cpu::masked_fill_);
  OPENREG_INPLACE(library, masked_fill__Tensor, at::cpu::masked_fill_);
}
