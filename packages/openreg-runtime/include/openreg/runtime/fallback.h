// SPDX-License-Identifier: BSD-3-Clause
// The fallback: the kernel of all operators that have none for this device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

using FallbackHandler = void (*)(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Sets the handler of the fallback and returns the previous one. Null removes the handler. PyTorch accepts one fallback
// per dispatch key, so this library registers it, and it passes every call to the handler. Without a handler a call
// throws c10::NotImplementedError, with the operator and the missing package. Thread-safe.
OPENREG_RUNTIME_API FallbackHandler set_fallback_handler(FallbackHandler handler);

}  // namespace openreg::runtime
