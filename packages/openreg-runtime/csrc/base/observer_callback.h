// SPDX-License-Identifier: BSD-3-Clause
// What must not be called inside a callback of observe_memory(), which runs with the allocator locked, says so.
#pragma once

#include <c10/macros/Macros.h>

#include "cache/memory_observers.h"

namespace openreg::runtime {

[[noreturn]] void throw_inside_callback(const char* function);

// Costs one relaxed load while nobody observes.
inline void refuse_inside_callback(const char* function) {
  if (C10_UNLIKELY(MemoryObserverList::exist() && MemoryObserverList::is_notifying())) {
    throw_inside_callback(function);
  }
}

}  // namespace openreg::runtime
