// SPDX-License-Identifier: BSD-3-Clause
// Views outside of the minimal set. Nothing runs on the device, so PyTorch's own functions serve as they are.
#include <ATen/core/Tensor.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

}  // namespace

}  // namespace openreg::ops
