// SPDX-License-Identifier: BSD-3-Clause
// The calling thread's current stream of a device whose index is known to be right.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace openreg::runtime {

// current_stream() of openreg/runtime/stream.h without its checks.
c10::StreamId current_stream_id(c10::DeviceIndex index);

}  // namespace openreg::runtime
