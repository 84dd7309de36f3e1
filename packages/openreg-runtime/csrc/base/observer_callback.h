// SPDX-License-Identifier: BSD-3-Clause
// A check for functions that must not be called inside a callback of observe_memory() (memory_observer.h), which tools
// set for events of the caching allocator, because the callback runs while the allocator's mutex is held.
#pragma once

#include <c10/macros/Macros.h>

#include "cache/memory_observers.h"

namespace openreg::runtime {

// Throws c10::Error with a message that names `function`.
[[noreturn]] void throw_inside_callback(const char* function);

// Throws c10::Error, with the name `function`, if the calling thread is inside a callback. Costs one relaxed load if
// there are no observers. Thread-safe.
inline void refuse_inside_callback(const char* function) {
  if (C10_UNLIKELY(MemoryObserverList::exist() && MemoryObserverList::is_notifying())) {
    throw_inside_callback(function);
  }
}

}  // namespace openreg::runtime
