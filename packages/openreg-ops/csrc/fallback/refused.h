// SPDX-License-Identifier: BSD-3-Clause
// Operators that never fall back to the CPU, because the result would be wrong or the call would not end.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg::ops {

// Throws c10::NotImplementedError with the reason when the operator is one of them: it gives a view or an object of the
// host, it changes an operand's sizes or storage, or it is on the list in refused.cpp.
void refuse_unfit_for_fallback(const c10::OperatorHandle& op);

}  // namespace openreg::ops
