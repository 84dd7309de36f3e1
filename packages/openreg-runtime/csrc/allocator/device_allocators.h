// SPDX-License-Identifier: BSD-3-Clause
// The caches of all devices, each with its history.
#pragma once

#include <c10/core/Device.h>

#include "allocator/driver_memory_provider.h"
#include "allocator/memory_history.h"
#include "cache/device_caching_allocator.h"

namespace openreg::runtime {

// What one device has. It lives as long as the process.
struct DeviceAllocatorState {
  explicit DeviceAllocatorState(c10::DeviceIndex index);

  DriverMemoryProvider provider;
  DeviceCachingAllocator cache;
  MemoryHistory history;  // after the cache that it observes
};

// Of a device whose index has been checked.
DeviceAllocatorState& allocator_state(c10::DeviceIndex index);

// The same for a public function, which checks the index and refuses to run inside a callback of an observer.
DeviceAllocatorState& checked_device(c10::DeviceIndex index, const char* function);

}  // namespace openreg::runtime
