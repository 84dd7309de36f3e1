// SPDX-License-Identifier: BSD-3-Clause
// The boxed fallback: the kernel that the dispatcher calls for all operators that have none for this device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A boxed kernel: takes the arguments of `op` from the stack and pushes its results.
using FallbackHandler = void (*)(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Sets the handler of the fallback and returns the previous one. A null `handler` removes it. PyTorch accepts only one
// fallback per dispatch key, so this library registers one that calls the handler. Without a handler, it throws
// c10::NotImplementedError, with the operator and the missing package. Thread-safe.
OPENREG_RUNTIME_API FallbackHandler set_fallback_handler(FallbackHandler handler);

}  // namespace openreg::runtime
