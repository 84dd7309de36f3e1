// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: matrix products.
#include "common/structured.h"

#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_cpu_dispatch.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mm_ops.h>

#include "kernel_choice.h"

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using openreg::ops::raw_kernels_chosen;

  OPENREG_STRUCTURED_INPLACE(library, addmm, addmm_out, addmm_, addmm)
  OPENREG_STRUCTURED_INPLACE(library, addmv, addmv_out, addmv_, addmv)
  OPENREG_STRUCTURED_INPLACE(library, baddbmm, baddbmm_out, baddbmm_, baddbmm)
  OPENREG_STRUCTURED(library, bmm, bmm_out, bmm)
  if (!raw_kernels_chosen()) {
    OPENREG_STRUCTURED(library, mm, mm_out, mm)
  }
}
