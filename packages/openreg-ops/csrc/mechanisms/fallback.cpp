// SPDX-License-Identifier: BSD-3-Clause
// Way: fallback of one operator. Registered by name, it takes operators to the CPU that never reach the fallback of the
// whole device, because PyTorch has a composite kernel for every device that takes precedence over it.
#include <torch/library.h>

#include "fallback/fallback.h"
#include "minimal/set.h"

namespace openreg::ops {

namespace {

// PyTorch's composite kernel sends a convolution on this device on to convolution_overrideable, whose own composite
// kernel only throws. The full set implements that one, so this is for the minimal set.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  if (minimal::is_alone()) {
    library.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&run_fallback>());
    library.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_fallback>());
  }
}

}  // namespace

}  // namespace openreg::ops
