// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/sync_debug.h"

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <atomic>
#include <string>

namespace openreg::runtime {

namespace {

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

void warn_or_error_on_sync(const char* name, c10::Device device) {
  const SyncDebugMode mode = sync_debug_mode();
  if (C10_LIKELY(mode == SyncDebugMode::kDefault)) {
    return;
  }
  const std::string message = c10::str(
      name, ": the host waits here for a stream of ", device,
      ", or would for a GPU's. Keep results on the device, copy ",
      "with non_blocking=True and pinned memory, use an operator that needs no data on the host, or allow the wait by ",
      "torch.openreg.set_sync_debug_mode(0)");
  TORCH_CHECK(mode != SyncDebugMode::kError, message);
  TORCH_WARN(message);
}

}  // namespace openreg::runtime
