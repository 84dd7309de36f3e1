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

// The caching allocator of pinned host memory (source: at::HostAllocator).
OPENREG_RUNTIME_API at::HostAllocator& host_allocator();

// Whether an address is pinned host memory of this backend. Never throws.
OPENREG_RUNTIME_API bool is_pinned(const void* address) noexcept;

}  // namespace openreg::runtime
