// SPDX-License-Identifier: BSD-3-Clause
// The fallback: a boxed kernel that runs on the CPU those operators that have no kernel for this device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::ops {

// Runs an operator with its CPU kernel on aliases: CPU tensors over the operands' bytes in device memory, which are not
// copied. Blocks until the kernel is complete, because the sizes of the results are unknown before, and then copies the
// results to the device. Counts each call (statistics.h) and adds a range "openreg::fallback aten::..." to the profiles
// of torch.profiler. Throws c10::Error if the operator must not fall back or has no CPU kernel, or if the stream is
// capturing.
void run_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Throws c10::NotImplementedError, with the reason, if the operator must not fall back to the CPU, because the result
// would be wrong, the call would recurse without end, or only the device can do what the operator does. Such an
// operator returns a view or a host object, changes the sizes or the storage of an operand, or is on the list in
// unsupported_ops.cpp.
void check_can_fall_back(const c10::OperatorHandle& op);

}  // namespace openreg::ops
