// SPDX-License-Identifier: BSD-3-Clause
// How work goes from a thread of the host to the device: where it has to wait, other threads of Python go on.
#pragma once

#include <cstddef>
#include <memory>

#include "openreg.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// What a kernel works on, until the device has taken it over.
using KernelState = std::unique_ptr<void, orReleaseFunction_t>;

// Enqueues; gives the GIL and the OpenMP threads away where that has to wait. `state` is that of the kernel, and is
// given up once the device owns it: after a wait, taking the GIL back may end this thread by unwinding its stack.
// Operands may be null: not told.
orError_t enqueue_kernel(orStream_t stream, const orKernel& kernel, const orOperand* operands, size_t operand_count,
                         KernelState& state);

// The result of a call that enqueues, and waits while the stream's queue is full. Not for what is called all the time:
// giving the GIL away takes longer than most of what is enqueued.
template <class Call>
orError_t enqueue_without_gil(const Call& call) {
  const GilRelease release;
  return call();
}

}  // namespace openreg::runtime
