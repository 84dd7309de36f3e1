// SPDX-License-Identifier: BSD-3-Clause
// Memory of what a launch owns.
#pragma once

#include <cstddef>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A thread of the host allocates what a launch owns and an engine releases it, launch after launch. The cache that
// malloc() keeps for each thread never helps there: one thread's runs empty and the other's runs over. This memory goes
// back to the threads that allocate. It is kept for the life of the process: as much as was in use at once.
//
// Thread-safe. allocate_launch_memory() throws std::bad_alloc; `size` of the release is that of the allocation.
OPENREG_RUNTIME_API void* allocate_launch_memory(size_t size);
OPENREG_RUNTIME_API void release_launch_memory(void* address, size_t size) noexcept;

// Base of classes whose objects are made with `new` for a launch. The class or its most derived class is final, or has
// a virtual destructor, so that the size is known when it is deleted.
struct LaunchOwned {
  static void* operator new(size_t size) { return allocate_launch_memory(size); }
  static void operator delete(void* address, size_t size) noexcept { release_launch_memory(address, size); }
};

}  // namespace openreg::runtime
