// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: the fallback of one operator. Some operators never reach the fallback of the whole device, because PyTorch
// has a composite kernel for every device that takes precedence over it. A registration by name sends them to the CPU.
#include <torch/library.h>

#include "fallback/fallback.h"
#include "minimal/selection.h"

namespace openreg::ops {

namespace {

// PyTorch's composite kernel forwards a convolution on this device to convolution_overrideable, whose own composite
// kernel only throws. The full set implements convolution_overrideable, so only the minimal set needs the fallback.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  if (minimal::is_minimal_only()) {
    library.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&run_fallback>());
    library.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_fallback>());
  }
}

}  // namespace

}  // namespace openreg::ops
