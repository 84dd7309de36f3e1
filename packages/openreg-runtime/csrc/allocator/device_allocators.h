// SPDX-License-Identifier: BSD-3-Clause
// The caching allocators of all devices, each with the objects that it needs: its memory provider, through which it
// uses the driver, and its history, which records its events.
#pragma once

#include <c10/core/Device.h>

#include "allocator/driver_memory_provider.h"
#include "allocator/memory_history.h"
#include "cache/device_caching_allocator.h"

namespace openreg::runtime {

// The caching allocator of one device, with its memory provider and its history. Exists until the process ends.
struct DeviceAllocatorState {
  explicit DeviceAllocatorState(c10::DeviceIndex index);

  DriverMemoryProvider provider;
  DeviceCachingAllocator cache;
  MemoryHistory history;  // declared after `cache`, which it observes
};

// Returns the state of a device whose index the caller has checked. Thread-safe.
DeviceAllocatorState& allocator_state(c10::DeviceIndex index);

// Same as `allocator_state()`, except that it checks the index. Throws c10::Error if the index is out of range. Also
// throws c10::Error if the calling thread is inside a callback of observe_memory(), because the thread holds the
// allocator's mutex there; `function`, the name of the public function that calls this one, is part of the text.
DeviceAllocatorState& checked_device(c10::DeviceIndex index, const char* function);

}  // namespace openreg::runtime
