// SPDX-License-Identifier: BSD-3-Clause
#include "allocator/poison.h"

#include "base/settings.h"
#include "base/tool_hooks.h"
#include "openreg.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

bool poison_is_on() {
  static const bool on = settings().poison;
  return on;
}

namespace {

void fill(void* address, int byte, size_t size, c10::Stream stream, CallReason why) noexcept {
  const CallReasonGuard reason(why);
  try {
    if (orMemsetAsync(address, byte, size, native_handle(stream)) != orSuccess) {
      orGetLastError();
    }
  } catch (const c10::Error&) {
    // The next call on that stream throws the same error.
  }
}

}  // namespace

void poison(void* address, size_t size, c10::Stream stream) noexcept {
  fill(address, kPoison, size, stream, CallReason::kPoison);
}

void fill_red_zone(void* address, size_t size, c10::Stream stream) noexcept {
  fill(address, kRedZoneByte, size, stream, CallReason::kRedZone);
}

}  // namespace openreg::runtime
