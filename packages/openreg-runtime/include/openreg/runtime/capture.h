// SPDX-License-Identifier: BSD-3-Clause
// Streams that record work for a graph instead of running it.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Which capture a stream takes part in, as the driver numbers them from 1 on; 0 for none.
OPENREG_RUNTIME_API uint64_t capture_id(c10::Stream stream);

// Whether the stream takes part in a capture (source: c10::impl::DeviceGuardImplInterface::isStreamCapturing).
OPENREG_RUNTIME_API bool is_capturing(c10::Stream stream);

// Throws c10::Error that names the operation when the stream is capturing. For operations that need the result of their
// kernel on the host, before they launch it.
OPENREG_RUNTIME_API void refuse_capture(const char* operation, c10::Stream stream);

}  // namespace openreg::runtime
