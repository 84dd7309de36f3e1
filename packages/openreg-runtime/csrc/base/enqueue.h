// SPDX-License-Identifier: BSD-3-Clause
// Enqueues tasks from a host thread without holding the GIL while the call blocks.
#pragma once

#include <cstddef>
#include <memory>

#include "openreg.h"
#include "openreg/runtime/gil.h"

namespace openreg::runtime {

// An owner of a kernel's state, until the device takes ownership.
using KernelState = std::unique_ptr<void, orReleaseFunction_t>;

// Enqueues a kernel. Releases the GIL and the calling thread's OpenMP workers while it blocks, for example on a full
// queue. On success the device owns the kernel's state. `state` is emptied before the GIL is reacquired, because
// that may end the thread by unwinding its stack. On failure `state` stays the owner. `operands` may be null, which
// means that they are unknown.
orError_t enqueue_kernel(orStream_t stream, const orKernel& kernel, const orOperand* operands, size_t operand_count,
                         KernelState& state);

// Returns the result of `call`, which enqueues a task and may block on a full queue. Releases the GIL meanwhile. Not
// for frequent calls, because releasing the GIL takes longer than most calls that enqueue.
template <class Call>
orError_t enqueue_without_gil(const Call& call) {
  const GilRelease release;
  return call();
}

}  // namespace openreg::runtime
