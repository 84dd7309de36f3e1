// SPDX-License-Identifier: BSD-3-Clause
// Finds poison that reaches the host: values that were computed from memory that nothing wrote. With OPENREG_POISON=1,
// the allocator fills new and released memory with the poison pattern. The poison byte 0xFF makes each floating-point
// number a NaN with all bits of its payload set. Arithmetic keeps the payload of a NaN operand (IEEE 754-2019, 6.2.3),
// while a NaN that arithmetic itself produces has only the quiet bit of the payload set. A conversion to half and back
// keeps at least the upper 10 bits of the payload. So a floating-point value on the host with these bits set comes from
// poisoned memory, through any number of operators that keep NaNs.
//
// bfloat16 decides nothing: PyTorch's conversion gives each NaN all 7 bits of its payload, which stay the upper ones in
// a wider dtype. One ordinary NaN looks like poison: that of half, where PyTorch converts single elements to float.
#pragma once

#include <ATen/core/Tensor.h>

#include "operator_watch.h"

namespace openreg::sanitizer {

// Returns true if an element of a tensor on the CPU, of any floating-point or complex dtype but bfloat16 whose numbers
// have 16 bits or more, has the payload of poison. Reads all elements.
bool has_poison(const at::Tensor& tensor);

// Returns the watch that checks the values that operators copy to the host, and reports poison to
// Sanitizer::poison_on_host(). It runs only in processes with OPENREG_POISON=1, because it adds a call to each
// operator.
OperatorWatch& poison_watch();

}  // namespace openreg::sanitizer
