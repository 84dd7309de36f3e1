// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/device.h"

#include <ATen/Context.h>

#include <atomic>

#include "base/allocator_settings.h"
#include "base/settings.h"
#include "openreg.h"
#include "openreg/runtime/host_wait.h"
#include "openreg/runtime/status.h"

namespace openreg::runtime {

namespace {

std::atomic<bool>& initialized() {
  static std::atomic<bool> value{false};
  return value;
}

}  // namespace

c10::DeviceIndex device_count() noexcept {
  int count = 0;
  if (orGetDeviceCount(&count) != orSuccess) {
    return 0;
  }
  return static_cast<c10::DeviceIndex>(count);
}

void check_device_index(int64_t index) {
  static const int count = [] {  // read once, as the driver does; again after it refused its settings
    int number = 0;
    OPENREG_CHECK(orGetDeviceCount(&number));
    return number;
  }();
  TORCH_CHECK(index >= 0 && index < count, "The device index is out of range: openreg:", index,
              " was asked for, but this process has ", count, " devices, openreg:0 to openreg:", count - 1,
              ". Set OPENREG_DEVICE_COUNT before the process starts to get more.");
}

c10::DeviceIndex current_device() {
  int device = 0;
  OPENREG_CHECK(orGetDevice(&device));
  return static_cast<c10::DeviceIndex>(device);
}

void set_device(c10::DeviceIndex index) {
  OPENREG_CHECK(orSetDevice(index));
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = current_device();
  if (previous != index) {
    set_device(index);
  }
  return previous;
}

c10::DeviceIndex maybe_exchange_device(c10::DeviceIndex index) {
  return index < 0 ? current_device() : exchange_device(index);
}

void start_driver() {
  settings();  // refuses here what it does not accept, not in the first kernel
  read_allocator_settings();
  ptrdiff_t offset = 0;
  OPENREG_CHECK(orGetKernelViewOffset(&offset));  // the cheapest call that needs the driver
  initialized() = true;
}

void ensure_initialized() {
  if (is_initialized()) {
    return;
  }
  // PyTorch looks at pinned memory of this backend only once it has initialised it, under a flag of its own, by our
  // hooks. It may be inside that flag already, so only this direction is safe: from here to PyTorch to start_driver().
  at::globalContext().lazyInitDevice(kDeviceType);
  start_driver();  // again: in a forked child the flag is set, yet the caller must hear that the device is lost
}

bool is_initialized() noexcept {
  return initialized().load(std::memory_order_relaxed) && orDriverIsUsable() != 0;
}

bool is_in_bad_fork() noexcept {
  return orDriverIsUsable() == 0;
}

void synchronize_device(c10::DeviceIndex index) {
  ensure_initialized();
  const CurrentDevice current(index);
  orError_t status = orSuccess;
  {
    const HostWait wait;
    status = orDeviceSynchronize();
  }
  OPENREG_CHECK(status);
}

void reset_device(c10::DeviceIndex index) {
  ensure_initialized();
  const CurrentDevice current(index);
  orError_t status = orSuccess;
  {
    const HostWait wait;
    status = orDeviceReset();
  }
  OPENREG_CHECK(status);
}

}  // namespace openreg::runtime
