// SPDX-License-Identifier: BSD-3-Clause
// The allocator of launch states: the host memory in which a launch owns its kernel and the kernel's captures until the
// kernel has run.
#pragma once

#include <cstddef>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A host thread allocates the state of each launch, and an engine thread releases it. The caches that malloc() has per
// thread do not help, because that of the host thread is always empty, and that of the engine thread overflows. Here,
// memory that one thread has released serves allocations of any other. Memory for states of up to 1 KiB is allocated
// for 32 of them at a time, and never returned to the system, so the process keeps the peak amount until it ends.

// Allocates `size` bytes. Throws std::bad_alloc. Thread-safe.
OPENREG_RUNTIME_API void* allocate_launch_memory(size_t size);
// Releases memory of allocate_launch_memory(). `size` must be that of the allocation. Thread-safe.
OPENREG_RUNTIME_API void release_launch_memory(void* address, size_t size) noexcept;

// A base class for launch states that are created with `new`. The most derived class must be final or have a virtual
// destructor, so that `delete` passes the right size.
struct PooledLaunchState {
  static void* operator new(size_t size) { return allocate_launch_memory(size); }
  static void operator delete(void* address, size_t size) noexcept { release_launch_memory(address, size); }
};

}  // namespace openreg::runtime
