// SPDX-License-Identifier: BSD-3-Clause
#include "base/tool_hooks.h"

namespace openreg::runtime {

namespace {

CallReason& reason_of_thread() noexcept {
  thread_local CallReason reason = CallReason::kProgram;
  return reason;
}

bool& context_is_fixed() noexcept {
  thread_local bool is_fixed = false;
  return is_fixed;
}

}  // namespace

LaunchContextGuard::LaunchContextGuard() noexcept : previous_(context_is_fixed()) {
  if (Operands::wanted()) {  // calls the hook of orSetEnqueueHook()
    call_before_memory();
  }
  context_is_fixed() = true;
}

LaunchContextGuard::~LaunchContextGuard() {
  context_is_fixed() = previous_;
}

bool launch_context_is_fixed() noexcept {
  return context_is_fixed();
}

void report_access(const char* name, c10::Stream stream, const Operands& operands) {
  if (auto* const hook = tool_hook_state().access.load(std::memory_order_acquire)) {
    hook(name, stream, operands);
  }
}

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
  tool_hook_state().access.store(hooks.access, std::memory_order_release);
  tool_hook_state().fills_red_zone.store(hooks.fills_red_zone, std::memory_order_release);
  tool_hook_state().red_zone.store(hooks.red_zone, std::memory_order_release);
}

}  // namespace openreg::runtime
