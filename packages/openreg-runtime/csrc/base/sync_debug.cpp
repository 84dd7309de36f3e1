// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/sync_debug.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace openreg::runtime {

namespace {

constexpr char kObjection[] =
    "the host waits for a stream of an openreg device here: it reads a result, copies without non_blocking=True or "
    "pinned memory, runs an operator that falls back to the CPU, or synchronizes. torch.openreg.set_sync_debug_mode(0) "
    "allows it.";

std::atomic<SyncDebugMode>& current_mode() {
  static std::atomic<SyncDebugMode> mode{SyncDebugMode::kDefault};
  return mode;
}

}  // namespace

SyncDebugMode sync_debug_mode() noexcept {
  return current_mode().load(std::memory_order_relaxed);
}

void set_sync_debug_mode(SyncDebugMode mode) noexcept {
  current_mode().store(mode, std::memory_order_relaxed);
}

void warn_or_error_on_sync() {
  const SyncDebugMode mode = sync_debug_mode();
  if (mode == SyncDebugMode::kWarn) {
    TORCH_WARN(kObjection);
  }
  TORCH_CHECK(mode != SyncDebugMode::kError, kObjection);
}

}  // namespace openreg::runtime
