// SPDX-License-Identifier: BSD-3-Clause
// Device and pinned host memory.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The caching allocator of device memory (source: c10::DeviceAllocator). A block belongs to the stream that was current
// when it was allocated: freed, it is reused at once by later work of that stream. The context of a DataPtr is the
// device address itself. Thread-safe; lives as long as the process.
OPENREG_RUNTIME_API c10::DeviceAllocator& device_allocator();

// The part of a device's capacity, 0 to 1, that its cache may hold; at first what PYTORCH_ALLOC_CONF says, else 1.
// What is held already stays.
OPENREG_RUNTIME_API double memory_fraction(c10::DeviceIndex index);
OPENREG_RUNTIME_API void set_memory_fraction(c10::DeviceIndex index, double fraction);

// Bytes of the block that device_allocator() handed out at this address; 0 if it did not, or took it back.
OPENREG_RUNTIME_API size_t allocated_size(void* address);

// The caching allocator of pinned host memory (source: at::HostAllocator).
OPENREG_RUNTIME_API at::HostAllocator& host_allocator();

// Whether an address is pinned host memory of this backend. Never throws.
OPENREG_RUNTIME_API bool is_pinned(const void* address) noexcept;

}  // namespace openreg::runtime
