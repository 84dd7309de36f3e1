// SPDX-License-Identifier: BSD-3-Clause
// Calls PyTorch's GPU trace (c10/core/impl/GPUTrace.h): callbacks in Python for events, streams, memory and
// synchronizing calls. torch._C._activate_gpu_trace() turns the trace on.
#pragma once

#include <c10/core/impl/GPUTrace.h>
#include <c10/macros/Macros.h>

namespace openreg::runtime {

// Calls `fire(interpreter)` if the trace is on, and costs one load otherwise. The callbacks acquire the GIL, so the
// caller must not hold a lock that another thread may acquire while it holds the GIL. Thread-safe.
template <class Fire>
void trace_gpu(const Fire& fire) {
  if (const c10::impl::PyInterpreter* const interpreter = c10::impl::GPUTrace::get_trace();
      C10_UNLIKELY(interpreter != nullptr)) {
    fire(**interpreter);
  }
}

// Returns the number by which the trace identifies a handle of the driver or an address.
inline uintptr_t trace_id(const void* object) {
  return reinterpret_cast<uintptr_t>(object);
}

}  // namespace openreg::runtime
