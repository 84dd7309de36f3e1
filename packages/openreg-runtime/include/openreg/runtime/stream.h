// SPDX-License-Identifier: BSD-3-Clause
// Streams of the driver as c10::Stream. The stream id 0 is the default stream of its device, and every other id is the
// driver's handle of the stream.
#pragma once

#include <c10/core/Stream.h>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// All functions of this header are thread-safe. An index of -1 means the current device, and they throw c10::Error if
// an index is out of range.

// Returns the calling thread's current stream of a device. Never initializes the device.
OPENREG_RUNTIME_API c10::Stream current_stream(c10::DeviceIndex index = -1);
// Sets the calling thread's current stream of the stream's device and returns the previous one. Does not change the
// current device.
OPENREG_RUNTIME_API c10::Stream exchange_stream(c10::Stream stream);
// Returns the default stream of a device. Never initializes the device.
OPENREG_RUNTIME_API c10::Stream default_stream(c10::DeviceIndex index);

// Returns one of 32 streams per device and priority class, in turn (source:
// c10::impl::DeviceGuardImplInterface::getStreamFromGlobalPool). The streams exist until the process ends.
OPENREG_RUNTIME_API c10::Stream stream_from_pool(c10::DeviceIndex index, bool high_priority);
// Creates a stream. Streams with a lower priority number run first, and numbers are clamped to the device's range. The
// stream exists until the process ends, because a c10::Stream has no owner.
OPENREG_RUNTIME_API c10::Stream new_stream(c10::DeviceIndex index, int priority);

// Returns the driver's handle of a stream. Valid as long as the stream. Throws c10::Error inside a callback of
// observe_memory(): it runs under the allocator's lock, and enqueuing a task could block there while the stream's queue
// is full. The functions below throw there, too.
OPENREG_RUNTIME_API orStream_t native_handle(c10::Stream stream);
// Returns the stream of a handle, which may come from another library. The owner of the handle keeps it valid as long
// as the stream is used. Throws c10::Error for an unknown handle.
OPENREG_RUNTIME_API c10::Stream stream_from_handle(orStream_t handle);

// Returns true if all tasks of the stream are complete. Throws c10::AcceleratorError if the device has a sticky error
// or if the stream is capturing.
OPENREG_RUNTIME_API bool query_stream(c10::Stream stream);
// Blocks until all tasks that are in the stream's queue now are complete. Releases the GIL while it blocks. Throws
// c10::AcceleratorError if the device has a sticky error or if the stream is capturing.
OPENREG_RUNTIME_API void synchronize_stream(c10::Stream stream);

}  // namespace openreg::runtime
