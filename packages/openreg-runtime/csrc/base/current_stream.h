// SPDX-License-Identifier: BSD-3-Clause
// Fast access to the id of the calling thread's current stream of a device, without checks.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace openreg::runtime {

// Same as `current_stream()` of openreg/runtime/stream.h, except that it returns the id and requires a valid `index`,
// which it does not check.
c10::StreamId current_stream_id(c10::DeviceIndex index);

}  // namespace openreg::runtime
