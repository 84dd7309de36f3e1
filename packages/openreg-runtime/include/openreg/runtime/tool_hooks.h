// SPDX-License-Identifier: BSD-3-Clause
// Hooks and queries for tools such as sanitizers, which need more than the callbacks of orSubscribe() (openreg.h)
// report: the tensors behind operands, the reason of a call of the driver, allocations of pinned memory, and red zones.
// An observer is a tool that has called orSubscribe(). A red zone is a range of bytes after an allocation, by which a
// tool detects kernels that write beyond it.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/Stream.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "openreg/runtime/export.h"
#include "openreg/runtime/operands.h"

namespace openreg::runtime {

// The layout of a tensor that is an operand of a launch, with the address and size of its orOperand (openreg.h).
struct OperandLayout {
  const void* address;
  size_t size;  // bytes from the first element to the last
  c10::ScalarType dtype;
  c10::SmallVector<int64_t, 5> sizes;
  c10::SmallVector<int64_t, 5> strides;  // in elements
};

// Returns the layouts of the operands of the calling thread's current launch, in the order in which Operands::add()
// added them. The first add() of an Operands object clears the list of its thread. Valid until that thread adds another
// tensor. An observer calls this in its callbacks `submit` and `capture`, which run on the thread that launches, and
// finds the layout of an operand by address and size.
OPENREG_RUNTIME_API const std::vector<OperandLayout>& operand_layouts() noexcept;

// The reason for which a thread calls the driver.
enum class CallReason : uint8_t {
  kProgram,    // any other call of the program, also a launch that waits because of OPENREG_LAUNCH_BLOCKING
  kWait,       // the program waits explicitly for a stream, by synchronize() or item()
  kAllocator,  // an allocator releases memory to the driver, or waits, records or queries an event to find out when
               // freed memory may be reused
  kPoison,     // the allocator fills new or released memory with the poison pattern
  kRedZone,    // the allocator fills the red zone of a block (ToolHooks::red_zone)
  kTool,       // a tool calls for its own purposes, so the call is no part of the program
};
// Returns the reason of the calling thread. An observer calls this in its callbacks.
OPENREG_RUNTIME_API CallReason call_reason() noexcept;

// A guard that sets the calling thread's CallReason and restores the previous one in its destructor.
class OPENREG_RUNTIME_API CallReasonGuard {
 public:
  explicit CallReasonGuard(CallReason reason) noexcept;
  CallReasonGuard(const CallReasonGuard&) = delete;
  CallReasonGuard& operator=(const CallReasonGuard&) = delete;
  ~CallReasonGuard();

 private:
  CallReason previous_;
};

// A guard for code that holds a lock while it launches. Tools record the Python stack of each launch (its context), for
// which they need the GIL. If observers (such tools) require operands, the constructor calls the hooks of
// orSetEnqueueHook() and ToolHooks::before_memory, so that tools record the stack then. Until the destructor,
// launch_context_is_fixed() returns true and tools use that stack, so that no thread blocks on the GIL while it holds
// the lock. Create the guard before the lock is taken.
class OPENREG_RUNTIME_API LaunchContextGuard {
 public:
  LaunchContextGuard() noexcept;
  LaunchContextGuard(const LaunchContextGuard&) = delete;
  LaunchContextGuard& operator=(const LaunchContextGuard&) = delete;
  ~LaunchContextGuard();

 private:
  bool previous_;
};
// Returns true while the calling thread has a LaunchContextGuard.
OPENREG_RUNTIME_API bool launch_context_is_fixed() noexcept;

// Calls ToolHooks::access for an access to memory that is not a task, such as a transfer between processes. Tools
// regard the access as ordered after the newest task of `stream`, and before tasks that are enqueued later. `name` is a
// string literal. Does nothing without that hook. Thread-safe.
OPENREG_RUNTIME_API void report_access(const char* name, c10::Stream stream, const Operands& operands);

// The byte with which red zones are filled. It is neither the poison byte nor a byte that programs write often.
inline constexpr int kRedZoneByte = 0xC5;

// Functions and settings of a tool; each function may be null. They must not throw.
struct ToolHooks {
  // Called on a thread that is about to allocate or release device memory by the caching allocator, while an observer
  // of observe_memory() (memory_observer.h) exists. Also called by the constructor of LaunchContextGuard, if
  // Operands::wanted() returns true. May acquire the GIL, because the thread holds no lock of the device or allocator.
  void (*before_memory)() = nullptr;
  // Called after pinned memory was allocated, with its size in bytes. Called with size 0 before it is released to the
  // allocator. The thread holds no lock of the allocator.
  void (*pinned)(void* address, size_t size) = nullptr;
  // Called by report_access(), on its thread.
  void (*access)(const char* name, c10::Stream stream, const Operands& operands) = nullptr;
  // Bytes of the red zone that the caching allocator adds after each new allocation of device memory; 0 for none. A
  // kernel that changes them has written beyond its allocation.
  size_t red_zone = 0;
  // Called after an allocation with a red zone, without a lock. If it returns true, a task of the allocation's stream,
  // whose CallReason is kRedZone, fills the zone with kRedZoneByte. It must return false while another stream may still
  // use the memory, because the fill would then change what a correct program computes.
  bool (*fills_red_zone)(const void* address) = nullptr;
};

// Replaces the hooks of the process. A call of the previous hooks may still be running. Thread-safe.
OPENREG_RUNTIME_API void set_tool_hooks(const ToolHooks& hooks) noexcept;

}  // namespace openreg::runtime
