// SPDX-License-Identifier: BSD-3-Clause
// Minimal set: other shapes over the same bytes. Nothing runs on the device, so PyTorch's own functions serve as they
// are.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "minimal/selection.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  minimal::implement(library, "as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  minimal::implement(library, "view", TORCH_FN(at::native::view));
  minimal::implement(library, "_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

}  // namespace

}  // namespace openreg::ops
