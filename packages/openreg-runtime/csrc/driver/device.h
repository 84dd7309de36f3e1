// SPDX-License-Identifier: BSD-3-Clause
// One device: its memory, its default stream, its error state, its counters.
#pragma once

#include <cstdint>
#include <string>

#include "device_memory.h"

namespace openreg::driver {

struct Stream;

struct Counters {
  uint64_t launches = 0;
  uint64_t copies = 0;
  uint64_t bytes_copied = 0;
  uint64_t busy_nanoseconds = 0;
};

struct Device {
  Device(const AddressSpace& space, int index_, size_t capacity) : index(index_), memory(space, index_, capacity) {}

  const int index;
  DeviceMemory memory;
  Stream* default_stream = nullptr;
  // Guarded by the scheduler's mutex:
  bool failed = false;
  std::string failure;  // what failed and why
  Counters counters;
};

// Index of the calling thread's current device, for reading and writing.
int& current_device();

}  // namespace openreg::driver
