// SPDX-License-Identifier: BSD-3-Clause
// Poison that reaches the host: values that were computed from memory that nothing wrote.
//
// The poison byte 0xFF makes each floating-point number a NaN with all bits of its payload set. Arithmetic hands the
// payload of a NaN on (IEEE 754-2019, 6.2.3), while a NaN that a computation makes has one bit of it. So a value on the
// host with this payload comes from poisoned memory, through any number of operators.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::sanitizer {

// Returns true if an element of a tensor on the CPU, of any floating type with 16 bits or more, has the payload of
// poison. Reads all elements.
bool has_poison(const at::Tensor& tensor);

// Begins to check the values that operators copy to the host. Costs a call of PyTorch's RecordFunction per operator, so
// it is for processes with OPENREG_POISON=1 only. Does nothing if it has begun. Thread-safe.
void watch_poison();
// Ends it. Thread-safe.
void stop_watching_poison();
// Returns true between the two. Thread-safe.
bool is_watching_poison();

}  // namespace openreg::sanitizer
