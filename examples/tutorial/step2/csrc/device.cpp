// SPDX-License-Identifier: BSD-3-Clause
#include "device.h"

#include <c10/util/Exception.h>

#include <utility>

#include "driver.h"

namespace pocket {

namespace {

// One for each thread, because autograd runs a thread of its own for each device.
thread_local c10::DeviceIndex current = 0;

}  // namespace

c10::DeviceIndex device_count() noexcept {
  static const auto count = static_cast<c10::DeviceIndex>(pocketGetDeviceCount());
  return count;
}

void check_device(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "there is no device pocket:", static_cast<int>(index),
              "; the indices go from 0 to ", device_count() - 1);
}

c10::DeviceIndex current_device() noexcept {
  return current;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  check_device(index);
  return std::exchange(current, index);
}

}  // namespace pocket
