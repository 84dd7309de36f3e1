// SPDX-License-Identifier: BSD-3-Clause
#include "base/tool_hooks.h"

namespace openreg::runtime {

namespace {

CallReason& reason_of_thread() noexcept {
  thread_local CallReason reason = CallReason::kProgram;
  return reason;
}

}  // namespace

CallReason call_reason() noexcept {
  return reason_of_thread();
}

CallReasonGuard::CallReasonGuard(CallReason reason) noexcept : previous_(reason_of_thread()) {
  reason_of_thread() = reason;
}

CallReasonGuard::~CallReasonGuard() {
  reason_of_thread() = previous_;
}

void set_tool_hooks(const ToolHooks& hooks) noexcept {
  tool_hook_state().before_memory.store(hooks.before_memory, std::memory_order_release);
  tool_hook_state().pinned.store(hooks.pinned, std::memory_order_release);
}

}  // namespace openreg::runtime
