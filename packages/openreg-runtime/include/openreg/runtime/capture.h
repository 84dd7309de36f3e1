// SPDX-License-Identifier: BSD-3-Clause
// Queries of captures. While a stream is capturing, it records its tasks for a graph instead of executing them (source:
// CUDA graphs).
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Returns the driver's id of the capture in which the stream takes part. Ids start at 1, and 0 means that the stream is
// not capturing. An invalidated capture has an id until it ends. Throws c10::Error for an unknown stream. Thread-safe.
OPENREG_RUNTIME_API uint64_t capture_id(c10::Stream stream);

// Returns true if capture_id() is not 0 (source: c10::impl::DeviceGuardImplInterface::isStreamCapturing).
OPENREG_RUNTIME_API bool is_capturing(c10::Stream stream);

// Throws c10::Error, with the operation, if the stream is capturing. Operations that need their kernel's result on the
// host call this before the launch, because a capture does not execute the kernel. Thread-safe.
OPENREG_RUNTIME_API void check_stream_not_capturing(const char* operation, c10::Stream stream);

}  // namespace openreg::runtime
