// SPDX-License-Identifier: BSD-3-Clause
// Activations that have no structured form.
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/relu_cpu_dispatch.h>
#include <ATen/ops/relu_ops.h>
#include <torch/library.h>

#include "common/launch_on.h"
#include "common/torch_versions.h"

namespace openreg::ops {

namespace {

// A clamp in all but name, and the structured table has that one.
at::Tensor relu(const at::Tensor& self) {
  OPENREG_CHECK_IMPLEMENTED_SINCE_14(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return at::clamp_min(self, 0);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("relu", TORCH_FN(relu));
  OPENREG_INPLACE(library, relu_, at::cpu::relu_);
}

}  // namespace

}  // namespace openreg::ops
