// SPDX-License-Identifier: BSD-3-Clause
// Unchecked access to the calling thread's current stream of a device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace openreg::runtime {

// Same as `current_stream()` of openreg/runtime/stream.h, except that it returns the id and requires a valid `index`,
// which it does not check.
c10::StreamId current_stream_id(c10::DeviceIndex index);

}  // namespace openreg::runtime
