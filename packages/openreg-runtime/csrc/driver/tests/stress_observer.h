// SPDX-License-Identifier: BSD-3-Clause
// This part of the stress program calls the functions that query a device while other threads use it, and checks that
// each result is consistent.
#pragma once

#include <cstdint>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

inline void observe_device(int device) {
  CHECK(orSetDevice(device) == orSuccess);
  size_t free = 0;
  size_t total = 0;
  CHECK(orMemGetInfo(&free, &total) == orSuccess);
  CHECK(free <= total);
  orDeviceStats before{};
  orDeviceStats after{};
  CHECK(orDeviceGetStats(&before, device) == orSuccess);
  CHECK(orDeviceGetStats(&after, device) == orSuccess);
  CHECK(before.allocated_bytes <= before.peak_allocated_bytes);
  CHECK(before.peak_allocated_bytes <= total);
  if (device != kBrokenDevice) {  // orDeviceReset() sets its counters to 0
    CHECK(before.launches <= after.launches);
    CHECK(before.bytes_copied <= after.bytes_copied);
    CHECK(before.busy_nanoseconds <= after.busy_nanoseconds);
    CHECK(orDeviceGetError(device) == orSuccess);
  }
  int percent = -1;
  CHECK(orDeviceGetUtilization(&percent, device) == orSuccess);
  CHECK(0 <= percent && percent <= 100);
  orDeviceProp properties{};
  CHECK(orGetDeviceProperties(&properties, device) == orSuccess);
  CHECK(properties.totalGlobalMem == total);
}

inline void observe_engines() {
  int engines = 0;
  CHECK(orGetEngineCount(&engines) == orSuccess);
  for (int engine = 0; engine < engines; ++engine) {
    orEngineStats before{};
    orEngineStats after{};
    CHECK(orEngineGetStats(&before, engine) == orSuccess);
    CHECK(orEngineGetStats(&after, engine) == orSuccess);
    CHECK(before.tasks <= after.tasks && before.busy_nanoseconds <= after.busy_nanoseconds);
  }
  orStream_t stream = nullptr;
  orStreamStats stats{};
  CHECK(orDeviceGetDefaultStream(&stream, 0) == orSuccess);
  CHECK(orStreamGetStats(stream, &stats) == orSuccess);
  CHECK(stats.completed <= stats.submitted);
}

inline void observe_address(void* address, int device) {
  orPointerAttributes attributes{};
  CHECK(orPointerGetAttributes(&attributes, address) == orSuccess);
  CHECK(attributes.type == orMemoryTypeDevice);
  CHECK(attributes.device == device);
  CHECK(orPointerGetAttributes(&attributes, &attributes) == orSuccess);
  CHECK(attributes.type == orMemoryTypeUnmanaged);
}

inline void observe_until_stopped(uint64_t seed) {
  Random random(seed);
  void* address = nullptr;
  CHECK(orSetDevice(0) == orSuccess);
  CHECK(orMalloc(&address, 4096) == orSuccess);
  orIpcMemHandle_t handle{};
  CHECK(orIpcGetMemHandle(&handle, address) == orSuccess);  // from now on its bytes are in a shared object
  while (!stop) {
    observe_device(static_cast<int>(pick(random, kLostDevice)));
    observe_engines();
    observe_address(static_cast<char*>(address) + pick(random, 4096), 0);
    pause_milliseconds(pick(random, 3));
  }
  CHECK(orFree(address) == orSuccess);
}

}  // namespace stress
