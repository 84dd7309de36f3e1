// SPDX-License-Identifier: BSD-3-Clause
// The state of one device: memory, default stream, error state and counters.
#pragma once

#include <cstdint>
#include <string>

#include "base/busy_meter.h"
#include "memory/device_memory.h"
#include "objects/stream.h"

namespace openreg::driver {

struct Device {
  Device(const AddressSpace& space, int index_, size_t capacity) : index(index_), memory(space, index_, capacity) {}

  // Throws Error(orErrorLaunchFailure) if the device has failed, Error(orErrorDeviceLost) if it is lost. The caller
  // holds the scheduler's mutex.
  void check_healthy() const {
    if (failed) [[unlikely]] {
      throw_unhealthy();
    }
  }

  // Calls check_healthy(). Also throws Error(orErrorLaunchFailure) if the device failed and was reset since the caller
  // read `resets_before`, because the caller's task may have been skipped. The caller holds the scheduler's mutex.
  void check_healthy_since(uint64_t resets_before) const;
  // Throws the error of check_healthy() if the device is still unhealthy. Otherwise throws Error(orErrorLaunchFailure)
  // for an event whose earlier tasks were skipped before a reset. The caller holds the scheduler's mutex.
  [[noreturn]] void throw_skipped() const;

  const int index;
  DeviceMemory memory;
  Stream* default_stream = nullptr;
  // Guarded by the scheduler's mutex:
  bool failed = false;
  bool lost = false;    // failed until the process ends
  uint64_t resets = 0;  // number of resets after a failure
  std::string failure;  // the failed task or wait, and the reason
  Counters counters;
  BusyMeter busy;

 private:
  [[noreturn]] void throw_unhealthy() const;
};

// Returns a reference to the index of the calling thread's current device, for reading and writing.
int& current_device();

}  // namespace openreg::driver
