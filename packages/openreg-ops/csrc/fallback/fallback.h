// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::ops {

// Runs any operator with its CPU kernel, without copying operands: the kernel works on aliases of the device's memory.
// Each call is counted (statistics.h) and is a range "openreg::fallback aten::..." in the profiles of
// torch.profiler. It waits for the device, because the sizes of the results are known only afterwards; results are
// copied to the device. Operators that must not fall back are refused.
void run_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Throws c10::NotImplementedError with the reason when the operator never falls back to the CPU, because the result
// would be wrong or the call would not end: it gives a view or an object of the host, it changes an operand's sizes or
// storage, or it is on the list in refused.cpp.
void refuse_unfit_for_fallback(const c10::OperatorHandle& op);

}  // namespace openreg::ops
