// SPDX-License-Identifier: BSD-3-Clause
// Devices and the calling thread's current device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The dispatch key and device type that this backend lives under.
constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

// Number of devices; 0 when the settings are refused. Never throws, never initialises.
OPENREG_RUNTIME_API c10::DeviceIndex device_count() noexcept;
// Throws c10::Error which names the index and the range.
OPENREG_RUNTIME_API void check_device_index(int64_t index);

OPENREG_RUNTIME_API c10::DeviceIndex current_device();
OPENREG_RUNTIME_API void set_device(c10::DeviceIndex index);
// Sets and returns the device that was current before.
OPENREG_RUNTIME_API c10::DeviceIndex exchange_device(c10::DeviceIndex index);
// The same, where a negative index changes nothing.
OPENREG_RUNTIME_API c10::DeviceIndex maybe_exchange_device(c10::DeviceIndex index);

// Makes a device current for its life, without a virtual call where it already is.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index) : previous_(exchange_device(index)), index_(index) {}
  explicit CurrentDevice(c10::Device device) : CurrentDevice(device.index()) {}
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (previous_ != index_) {
      set_device(previous_);  // was current before, so it cannot be refused
    }
  }

 private:
  c10::DeviceIndex previous_;
  c10::DeviceIndex index_;
};

// Initialises this backend once: the driver and what PyTorch keeps about it. Every function that needs the driver calls
// it. Throws in a forked child of a process that used the device.
OPENREG_RUNTIME_API void ensure_initialized();
// The part of it that PyTorch calls back, through its hooks (source: at::Context::lazyInitDevice). Call
// ensure_initialized().
OPENREG_RUNTIME_API void start_driver();
// Whether ensure_initialized() succeeded in this process and still holds.
OPENREG_RUNTIME_API bool is_initialized() noexcept;
// Whether this process is a forked child of one that used the device.
OPENREG_RUNTIME_API bool is_in_bad_fork() noexcept;

// Waits for all work of a device. Releases the GIL meanwhile. Throws the device's sticky error.
OPENREG_RUNTIME_API void synchronize_device(c10::DeviceIndex index);
// Waits for a device and clears its sticky error and counters.
OPENREG_RUNTIME_API void reset_device(c10::DeviceIndex index);

}  // namespace openreg::runtime
