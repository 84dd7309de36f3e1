// SPDX-License-Identifier: BSD-3-Clause
// The Python stack and the autograd node of the calling thread, captured when it enqueues a task or calls an allocator.
// They are captured before the thread locks anything of the device, because walking a Python stack requires the GIL.
#pragma once

#include <cstdint>
#include <string>

namespace openreg::sanitizer {

// The context of the newest launch of a thread. Stacks are numbers in the StackTable (stacks.h); 0 stands for none.
struct LaunchContext {
  uint32_t stack = 0;
  uint32_t forward = 0;     // of the forward operator, while the thread computes its derivative
  std::string node;         // name of the autograd node that computes the derivative, or empty
  uint32_t allocation = 0;  // of the newest call of the caching allocator
};

// Returns the context of the calling thread.
LaunchContext& launch_context() noexcept;

// Capture the context of a launch and of a call of the caching allocator, for orSetEnqueueHook() and for
// ToolHooks::before_memory. Acquire the GIL. Do nothing while runtime::launch_context_is_fixed(), because the thread
// may hold a lock then and keeps its context.
void take_launch_context() noexcept;
void take_allocation_context() noexcept;

// Returns true if the calling thread is a helper thread: a thread of the backend that drives collectives and runs no
// Python.
bool is_helper_thread() noexcept;

}  // namespace openreg::sanitizer
