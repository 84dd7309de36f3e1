// SPDX-License-Identifier: BSD-3-Clause
#include "poison.h"

#include "openreg.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/stream.h"
#include "settings.h"

namespace openreg::runtime {

bool poison_is_on() {
  static const bool on = settings().poison;
  return on;
}

void poison(const Block& block, c10::DeviceIndex index) noexcept {
  try {
    const c10::Stream stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, index), block.stream);
    if (orMemsetAsync(block.address, kPoison, block.size, native_handle(stream)) != orSuccess) {
      orGetLastError();
    }
  } catch (const c10::Error&) {
    // The user hears of it from the next call on that stream.
  }
}

}  // namespace openreg::runtime
