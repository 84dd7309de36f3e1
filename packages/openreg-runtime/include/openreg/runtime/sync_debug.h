// SPDX-License-Identifier: BSD-3-Clause
// The sync debug mode, which reports the places where a program synchronizes with the device (source:
// torch.cuda.set_sync_debug_mode()).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The effect of a synchronizing call: none, a warning, or an error.
enum class SyncDebugMode : uint8_t { kDefault = 0, kWarn = 1, kError = 2 };

// Returns the mode. All threads of the process share one mode. Thread-safe.
OPENREG_RUNTIME_API SyncDebugMode sync_debug_mode() noexcept;
// Sets the mode of all threads of the process. Thread-safe.
OPENREG_RUNTIME_API void set_sync_debug_mode(SyncDebugMode mode) noexcept;

// Warns in mode kWarn, and throws c10::Error in mode kError. The message names the operator or function, `name`, and
// the device. An operator that synchronizes with a stream of the device calls this first, before it enqueues the tasks
// for which it then waits. If it threw later, these tasks would still use memory of the caller. synchronize_device()
// does not call this, because a program that synchronizes a whole device does so on purpose. Thread-safe.
OPENREG_RUNTIME_API void warn_or_error_on_sync(const char* name, c10::Device device);

}  // namespace openreg::runtime
