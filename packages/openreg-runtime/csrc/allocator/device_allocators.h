// SPDX-License-Identifier: BSD-3-Clause
// The caches of all devices, each with its history.
#pragma once

#include <c10/core/Device.h>

#include "device_backend.h"
#include "memory/device_cache.h"
#include "memory_history.h"

namespace openreg::runtime {

// What one device has. It lives as long as the process.
struct CachedDevice {
  explicit CachedDevice(c10::DeviceIndex index);

  DeviceBackend backend;
  DeviceCache cache;
  History history;  // after the cache that it observes
};

// Of a device whose index has been checked.
CachedDevice& cached_device(c10::DeviceIndex index);

// The same for a public function, which checks the index and refuses to run inside a callback of an observer.
CachedDevice& checked_device(c10::DeviceIndex index, const char* function);

}  // namespace openreg::runtime
