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

void poison(void* address, size_t size, c10::Stream stream) noexcept {
  const CallReasonGuard reason(CallReason::kPoison);
  try {
    if (orMemsetAsync(address, kPoison, size, native_handle(stream)) != orSuccess) {
      orGetLastError();
    }
  } catch (const c10::Error&) {
    // The next call on that stream throws the same error.
  }
}

}  // namespace openreg::runtime
