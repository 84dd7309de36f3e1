// SPDX-License-Identifier: BSD-3-Clause
// Enqueues tasks on a stream. While a call blocks, for example because the stream's queue is full, it releases the GIL.
#pragma once

#include <cstddef>
#include <memory>

#include "openreg.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// An owner of the state of a kernel (orKernel::state) until the driver takes ownership of it.
using KernelState = std::unique_ptr<void, orReleaseFunction_t>;

// Enqueues a kernel. If it has to block, for example on a full queue, it releases the GIL and ends the calling thread's
// OpenMP threads meanwhile (HostWait in host_wait.h). On success the driver owns the kernel's state. `state` is emptied
// before the GIL is acquired again, because acquiring it may end the thread by unwinding its stack. On failure `state`
// stays the owner. `operands` may be null, which means that they are unknown. Returns the driver's status.
orError_t enqueue_kernel(orStream_t stream, const orKernel& kernel, const orOperand* operands, size_t operand_count,
                         KernelState& state);

// Returns the result of `call`, which enqueues a task and may block on a full queue. Releases the GIL during the call.
// Frequent calls should not use it, because releasing the GIL takes longer than most calls that enqueue.
template <class Call>
orError_t enqueue_without_gil(const Call& call) {
  const GilRelease release;
  return call();
}

}  // namespace openreg::runtime
