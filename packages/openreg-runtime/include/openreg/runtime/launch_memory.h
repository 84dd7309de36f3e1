// SPDX-License-Identifier: BSD-3-Clause
// The allocator of the state that a launch owns.
#pragma once

#include <cstddef>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A host thread allocates the state of each launch, and an engine thread releases it. malloc() has a cache per thread,
// which does not help: the host's is always empty, and the engine's overflows. Here released memory goes back to the
// threads that allocate. The memory in use at the peak is kept until the process ends.

// Allocates `size` bytes. Throws std::bad_alloc. Thread-safe.
OPENREG_RUNTIME_API void* allocate_launch_memory(size_t size);
// Releases memory of allocate_launch_memory(). `size` must be that of the allocation. Thread-safe.
OPENREG_RUNTIME_API void release_launch_memory(void* address, size_t size) noexcept;

// The base of classes whose objects are made with `new` for a launch. The most derived class must be final or have a
// virtual destructor, so that `delete` passes the right size.
struct LaunchOwned {
  static void* operator new(size_t size) { return allocate_launch_memory(size); }
  static void operator delete(void* address, size_t size) noexcept { release_launch_memory(address, size); }
};

}  // namespace openreg::runtime
