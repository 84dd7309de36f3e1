// SPDX-License-Identifier: BSD-3-Clause
// Devices and the calling thread's current device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The device type of this backend; its dispatch key has the same name.
constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

// All functions of this header are thread-safe. Calls of functions that never initialize the device may precede a fork,
// after which the child can use the device.

// Returns the number of devices, or 0 if an environment variable of the driver is invalid. Never initializes the
// device.
OPENREG_RUNTIME_API c10::DeviceIndex device_count() noexcept;
// Throws c10::Error, with the index and the valid range, if the index is out of range.
OPENREG_RUNTIME_API void check_device_index(int64_t index);

// Returns the calling thread's current device, 0 in a new thread. Never initializes the device.
OPENREG_RUNTIME_API c10::DeviceIndex current_device();
// Sets the calling thread's current device. Throws c10::Error if the index is out of range. Never initializes the
// device.
OPENREG_RUNTIME_API void set_device(c10::DeviceIndex index);
// Same as `set_device()`, except that it returns the previous device.
OPENREG_RUNTIME_API c10::DeviceIndex exchange_device(c10::DeviceIndex index);
// Same as `exchange_device()`, except that a negative index changes nothing.
OPENREG_RUNTIME_API c10::DeviceIndex maybe_exchange_device(c10::DeviceIndex index);

// A guard that makes a device current. If another one was, the destructor restores it. Unlike c10::DeviceGuard, it
// makes no virtual call. The constructor throws c10::Error if the index is out of range.
class CurrentDeviceGuard {
 public:
  explicit CurrentDeviceGuard(c10::DeviceIndex index) : previous_(exchange_device(index)), index_(index) {}
  explicit CurrentDeviceGuard(c10::Device device) : CurrentDeviceGuard(device.index()) {}
  CurrentDeviceGuard(const CurrentDeviceGuard&) = delete;
  CurrentDeviceGuard& operator=(const CurrentDeviceGuard&) = delete;
  ~CurrentDeviceGuard() {
    if (previous_ != index_) {
      set_device(previous_);  // cannot throw, because this device was current before
    }
  }

 private:
  c10::DeviceIndex previous_;
  c10::DeviceIndex index_;
};

// Initializes this backend once: the driver, and PyTorch's state of the device type. Every function that needs the
// driver calls this one. Throws c10::ValueError if an environment variable of the runtime is invalid. Throws c10::Error
// if an environment variable of the driver is invalid, or in a forked child of a process that used the device.
OPENREG_RUNTIME_API void ensure_initialized();
// Starts the driver only. PyTorch calls this through the hook init() when ensure_initialized() initializes its state of
// the device type (source: at::Context::lazyInitDevice). All other code calls ensure_initialized(), which throws the
// errors of this function.
OPENREG_RUNTIME_API void start_driver();
// Returns true if the driver has been started in this process and is usable: neither in a forked child nor at exit.
OPENREG_RUNTIME_API bool is_initialized() noexcept;
// Returns true if this process is a forked child of one that used the device, or is exiting.
OPENREG_RUNTIME_API bool is_in_bad_fork() noexcept;

// Blocks until all tasks of a device are complete. Releases the GIL while it blocks. Throws the device's sticky error,
// a c10::AcceleratorError.
OPENREG_RUNTIME_API void synchronize_device(c10::DeviceIndex index);
// Blocks until all tasks of a device are complete, then clears its sticky error and its counters. Releases the GIL
// while it blocks. Throws c10::AcceleratorError if the device is lost.
OPENREG_RUNTIME_API void reset_device(c10::DeviceIndex index);

}  // namespace openreg::runtime
