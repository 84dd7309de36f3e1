// SPDX-License-Identifier: BSD-3-Clause
// The allocators of device memory and of pinned host memory.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Returns the caching allocator of device memory (source: c10::DeviceAllocator). A block belongs to the stream that was
// current when it was allocated. After its release, later tasks of that stream may reuse it at once. The context of a
// DataPtr is the device address itself. If no free block fits, an allocation may block until the tasks of the device
// are complete, and releases the GIL while it blocks. It throws c10::OutOfMemoryError if there is still no room.
// Thread-safe. Valid until the process ends.
OPENREG_RUNTIME_API c10::DeviceAllocator& device_allocator();

// Returns the part of a device's capacity, from 0 to 1, that its caching allocator may reserve. Before the first
// set_memory_fraction() it is per_process_memory_fraction of PYTORCH_ALLOC_CONF, or 1 without that setting. Throws
// c10::Error if the index is out of range. Thread-safe.
OPENREG_RUNTIME_API double memory_fraction(c10::DeviceIndex index);
// Sets the part of a device's capacity that its caching allocator may reserve (source:
// torch.cuda.set_per_process_memory_fraction()). Memory that is already reserved beyond it stays reserved. Throws
// c10::Error if the index is out of range, and c10::ValueError if `fraction` is not from 0 to 1. Thread-safe.
OPENREG_RUNTIME_API void set_memory_fraction(c10::DeviceIndex index, double fraction);

// Returns the size in bytes of the allocated block of device_allocator() that begins at `address`, or 0 if there is
// none. Throws c10::Error inside a callback of observe_memory(). Thread-safe.
OPENREG_RUNTIME_API size_t allocated_size(void* address);

// Returns the caching allocator of pinned host memory (source: at::HostAllocator). Thread-safe. Valid until the process
// ends.
OPENREG_RUNTIME_API at::HostAllocator& host_allocator();

// Returns true if `address` lies in pinned host memory of this backend. Never initializes the device. Thread-safe.
OPENREG_RUNTIME_API bool is_pinned(const void* address) noexcept;

}  // namespace openreg::runtime
