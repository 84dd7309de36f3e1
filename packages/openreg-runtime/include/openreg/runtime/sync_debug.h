// SPDX-License-Identifier: BSD-3-Clause
// Finds the places where a program waits for the device without meaning to (source: torch.cuda's sync debug mode).
#pragma once

#include <cstdint>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

enum class SyncDebugMode : uint8_t { kDefault = 0, kWarn = 1, kError = 2 };

// One setting for all threads of the process.
OPENREG_RUNTIME_API SyncDebugMode sync_debug_mode() noexcept;
OPENREG_RUNTIME_API void set_sync_debug_mode(SyncDebugMode mode) noexcept;

// Warns or throws in these modes. Called before the host waits for a stream, and before it enqueues what it will wait
// for: work that is enqueued already may use memory of the caller. Whoever waits for a whole device means it.
OPENREG_RUNTIME_API void warn_or_error_on_sync();

}  // namespace openreg::runtime
