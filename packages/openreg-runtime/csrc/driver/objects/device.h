// SPDX-License-Identifier: BSD-3-Clause
// Device is the state of one simulated accelerator: its memory, default stream, error state and counters.
#pragma once

#include <cstdint>
#include <string>

#include "base/busy_meter.h"
#include "memory/device_memory.h"
#include "objects/stream.h"

namespace openreg::driver {

// One device. Members are thread-safe, constant after the start, or guarded by the scheduler's mutex as noted.
struct Device {
  // `capacity` is in bytes.
  Device(const AddressSpace& space, int index_, size_t capacity) : index(index_), memory(space, index_, capacity) {}

  // Throws the sticky error of the device, if it has one: Error(orErrorDeviceLost) if it is lost, otherwise
  // Error(orErrorLaunchFailure). The caller holds the scheduler's mutex.
  void check_healthy() const {
    if (failed) [[unlikely]] {
      throw_unhealthy();
    }
  }

  // Throws as check_healthy() does. Also throws Error(orErrorLaunchFailure) if the device has failed and was reset
  // since the caller read `resets_before` from `resets`, because tasks of the caller may have been skipped. The caller
  // holds the scheduler's mutex.
  void check_healthy_since(uint64_t resets_before) const;
  // Throws for an event whose tasks were skipped because the device failed: the error of check_healthy() if the device
  // was not reset since, otherwise Error(orErrorLaunchFailure). The caller holds the scheduler's mutex.
  [[noreturn]] void throw_skipped() const;

  const int index;
  DeviceMemory memory;               // thread-safe
  Stream* default_stream = nullptr;  // constant after the scheduler was created
  // Guarded by the scheduler's mutex:
  bool failed = false;  // true while the device has a sticky error; its tasks are skipped
  bool lost = false;    // true if it stays failed until the process ends
  uint64_t resets = 0;  // number of resets after a failure
  std::string failure;  // text on the failed task or wait, and the reason
  Counters counters;    // without the tasks that engines execute now
  BusyMeter busy;       // without the tasks that engines execute now

 private:
  [[noreturn]] void throw_unhealthy() const;
};

// Returns a reference to the index of the calling thread's current device, for reading and writing.
int& current_device();

}  // namespace openreg::driver
