// SPDX-License-Identifier: BSD-3-Clause
// What the calling thread is doing when it enqueues a task or calls the allocator. It is taken before any lock of the
// device, because walking a Python stack requires the GIL.
#pragma once

#include <cstdint>
#include <string>

namespace openreg::sanitizer {

// The context of the calling thread's newest launch. Stacks are numbers of the StackTable.
struct LaunchContext {
  uint32_t stack = 0;
  uint32_t forward = 0;     // of the forward operator, while the thread computes a derivative
  std::string node;         // of autograd, while the thread computes a derivative
  uint32_t allocation = 0;  // of the newest call of the allocator
};

LaunchContext& launch_context() noexcept;

// Takes the context; see orSetEnqueueHook() and ToolHooks::before_memory. Acquire the GIL.
void take_launch_context() noexcept;
void take_allocation_context() noexcept;

// Returns true if the calling thread belongs to no Python program: it moves communication along.
bool is_helper_thread() noexcept;

}  // namespace openreg::sanitizer
