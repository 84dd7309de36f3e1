// SPDX-License-Identifier: BSD-3-Clause
// The functions that a tool such as the sanitizer has set with set_tool_hooks(). The parts of the runtime read them
// here and call them.
#pragma once

#include <c10/macros/Macros.h>

#include <atomic>
#include <cstddef>

#include "openreg/runtime/tool_hooks.h"

namespace openreg::runtime {

// The hooks, with the members of ToolHooks. Each is an atomic of its own, so a reader may see the hooks of two calls of
// set_tool_hooks(). Thread-safe.
struct ToolHookState {
  std::atomic<void (*)()> before_memory{nullptr};
  std::atomic<void (*)(void*, size_t)> pinned{nullptr};
  std::atomic<void (*)(const char*, c10::Stream, const Operands&)> access{nullptr};
  std::atomic<size_t> red_zone{0};
  std::atomic<bool (*)(const void*)> fills_red_zone{nullptr};
};

// Returns the hooks of the process.
inline ToolHookState& tool_hook_state() {
  static ToolHookState state;
  return state;
}

// Calls ToolHooks::before_memory, if there is one. The caller holds no lock.
inline void call_before_memory() {
  if (auto* const hook = tool_hook_state().before_memory.load(std::memory_order_acquire); C10_UNLIKELY(hook)) {
    hook();
  }
}

}  // namespace openreg::runtime
