// SPDX-License-Identifier: BSD-3-Clause
// Streams as c10::Stream. Id 0 is the default stream of the device; any other id is the driver's handle.
#pragma once

#include <c10/core/Stream.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The calling thread's current stream of a device; -1 means the current device.
OPENREG_RUNTIME_API c10::Stream current_stream(c10::DeviceIndex index = -1);
// Makes a stream current for its device in this thread; returns the one before. The current device stays.
OPENREG_RUNTIME_API c10::Stream exchange_stream(c10::Stream stream);
OPENREG_RUNTIME_API c10::Stream default_stream(c10::DeviceIndex index);

// One of 32 streams per device and priority class, in turn; they live as long as the process.
OPENREG_RUNTIME_API c10::Stream stream_from_pool(c10::DeviceIndex index, bool high_priority);
// A stream of its own; a lower number is served first, numbers are clamped to the device's range. It lives as long as
// the process, because a c10::Stream has no owner.
OPENREG_RUNTIME_API c10::Stream new_stream(c10::DeviceIndex index, int priority);

// The driver's handle, valid as long as the process.
OPENREG_RUNTIME_API orStream_t native_handle(c10::Stream stream);
// The stream that another library made: its owner keeps it alive as long as it is used here. Throws for an unknown
// handle.
OPENREG_RUNTIME_API c10::Stream stream_from_handle(orStream_t handle);

OPENREG_RUNTIME_API bool query_stream(c10::Stream stream);
// Releases the GIL while it waits. Throws the device's sticky error.
OPENREG_RUNTIME_API void synchronize_stream(c10::Stream stream);

}  // namespace openreg::runtime
