// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/device.h"

#include <ATen/Context.h>

#include <atomic>

#include "base/allocator_settings.h"
#include "base/gpu_trace.h"
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
  static const int count = [] {  // read once, because it is constant; again if the driver's settings were invalid
    int number = 0;
    OPENREG_CHECK(orGetDeviceCount(&number));
    return number;
  }();
  TORCH_CHECK(index >= 0 && index < count, "The device index is out of range: openreg:", index,
              " was requested, but this process has ", count, " devices, openreg:0 to openreg:", count - 1,
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
  settings();  // throws here if they are invalid, not in the first kernel
  read_allocator_settings();
  ptrdiff_t offset = 0;
  OPENREG_CHECK(orGetKernelViewOffset(&offset));  // the cheapest call that starts the driver
  initialized() = true;
}

void ensure_initialized() {
  if (is_initialized()) {
    return;
  }
  // PyTorch uses this backend's pinned memory only after it has initialized the backend itself, once, through a hook
  // that calls start_driver(). This thread may be inside that initialization already. Therefore this function calls
  // PyTorch, and start_driver() must not.
  at::globalContext().lazyInitDevice(kDeviceType);
  start_driver();  // again, because in a forked child PyTorch's flag is set, and only this call throws
}

bool is_initialized() noexcept {
  return initialized().load(std::memory_order_relaxed) && orDriverIsUsable() != 0;
}

bool is_in_bad_fork() noexcept {
  return orDriverIsUsable() == 0;
}

void synchronize_device(c10::DeviceIndex index) {
  ensure_initialized();
  const CurrentDeviceGuard current(index);
  trace_gpu([](const auto& python) { python.trace_gpu_device_synchronization(kDeviceType); });
  orError_t status = orSuccess;
  {
    const HostWait wait;
    status = orDeviceSynchronize();
  }
  OPENREG_CHECK(status);
}

void reset_device(c10::DeviceIndex index) {
  ensure_initialized();
  const CurrentDeviceGuard current(index);
  orError_t status = orSuccess;
  {
    const HostWait wait;
    status = orDeviceReset();
  }
  OPENREG_CHECK(status);
}

}  // namespace openreg::runtime
