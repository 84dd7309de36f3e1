// SPDX-License-Identifier: BSD-3-Clause
// One device: its memory, its default stream, its error state, its counters.
#pragma once

#include <cstdint>
#include <string>

#include "base/busy_meter.h"
#include "memory/device_memory.h"
#include "objects/stream.h"

namespace openreg::driver {

struct Device {
  Device(const AddressSpace& space, int index_, size_t capacity) : index(index_), memory(space, index_, capacity) {}

  // Throws Error(orErrorLaunchFailure) when the device has failed, Error(orErrorDeviceLost) when it is lost. Under the
  // scheduler's mutex.
  void check_healthy() const {
    if (failed) [[unlikely]] {
      throw_unhealthy();
    }
  }

  // The same, and throws Error(orErrorLaunchFailure) when the device was reset after a failure since `resets_before`:
  // who waited from then on did so for work that may have been skipped.
  void check_healthy_since(uint64_t resets_before) const;
  // The same, for work that was skipped because the device had failed.
  [[noreturn]] void throw_skipped() const;

  const int index;
  DeviceMemory memory;
  Stream* default_stream = nullptr;
  // Guarded by the scheduler's mutex:
  bool failed = false;
  bool lost = false;    // failed for good
  uint64_t resets = 0;  // how often it was reset after a failure
  std::string failure;  // what failed and why
  Counters counters;
  BusyMeter busy;

 private:
  [[noreturn]] void throw_unhealthy() const;
};

// Index of the calling thread's current device, for reading and writing.
int& current_device();

}  // namespace openreg::driver
