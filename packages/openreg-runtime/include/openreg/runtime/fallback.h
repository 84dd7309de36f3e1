// SPDX-License-Identifier: BSD-3-Clause
// What happens when an operator has no kernel for this device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

using FallbackHandler = void (*)(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// PyTorch accepts one fallback per dispatch key, so this library registers it and passes every call on to the handler.
// Without one the call throws c10::NotImplementedError that names the operator and the package that is missing.
// Thread-safe; null removes the handler. Returns the one before.
OPENREG_RUNTIME_API FallbackHandler set_fallback_handler(FallbackHandler handler);

}  // namespace openreg::runtime
