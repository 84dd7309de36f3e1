// SPDX-License-Identifier: BSD-3-Clause
// The sync debug mode, which reports the places where a program synchronizes with the device (source:
// torch.cuda.set_sync_debug_mode()).
#pragma once

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

enum class SyncDebugMode : uint8_t { kDefault = 0, kWarn = 1, kError = 2 };

// Returns the mode, which is one for all threads of the process. Thread-safe.
OPENREG_RUNTIME_API SyncDebugMode sync_debug_mode() noexcept;
// Sets the mode of all threads of the process. Thread-safe.
OPENREG_RUNTIME_API void set_sync_debug_mode(SyncDebugMode mode) noexcept;

// Warns in mode kWarn, throws c10::Error in mode kError. Call it before the host synchronizes with a stream. Call it
// also before the enqueue of the tasks for which the host then waits, because an enqueued task may use memory of the
// caller. synchronize_device() does not call it, because a program that synchronizes a whole device intends to.
// Thread-safe.
OPENREG_RUNTIME_API void warn_or_error_on_sync();

}  // namespace openreg::runtime
