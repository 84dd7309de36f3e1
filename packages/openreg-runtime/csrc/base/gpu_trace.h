// SPDX-License-Identifier: BSD-3-Clause
// Fires PyTorch's GPU trace (c10/core/impl/GPUTrace.h): callbacks in Python for events, streams, memory and
// synchronizing calls, which torch._C._activate_gpu_trace() turns on.
#pragma once

#include <c10/core/impl/GPUTrace.h>
#include <c10/macros/Macros.h>

namespace openreg::runtime {

// Calls `fire(interpreter)` if the trace is on. The callbacks run in Python, so the caller holds no lock whose holder
// may need the GIL. Costs one load otherwise. Thread-safe.
template <class Fire>
void trace_gpu(const Fire& fire) {
  if (const c10::impl::PyInterpreter* const interpreter = c10::impl::GPUTrace::get_trace();
      C10_UNLIKELY(interpreter != nullptr)) {
    fire(**interpreter);
  }
}

// Returns a handle or an address as the trace passes it.
inline uintptr_t trace_id(const void* object) {
  return reinterpret_cast<uintptr_t>(object);
}

}  // namespace openreg::runtime
