// SPDX-License-Identifier: BSD-3-Clause
// Facts about the calling thread's work that a subscriber of the driver (openreg.h) cannot see, for tools such as
// sanitizers: the tensors behind operands, the reason of a call of the driver, and allocations of pinned memory.
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

// The tensor behind an orOperand with this address and size.
struct OperandLayout {
  const void* address;
  size_t size;  // bytes from the first element to the last
  c10::ScalarType dtype;
  c10::SmallVector<int64_t, 5> sizes;
  c10::SmallVector<int64_t, 5> strides;  // in elements
};

// Returns the layouts of the tensors that the calling thread has added to Operands since the first tensor of its newest
// Operands object. Valid until the thread adds another tensor. A subscriber reads it in `submit` and `capture`, on the
// thread that launches, and finds an operand by address and size.
OPENREG_RUNTIME_API const std::vector<OperandLayout>& operand_layouts() noexcept;

// The reason for which the calling thread calls the driver. A subscriber reads it in its callbacks.
enum class CallReason : uint8_t {
  kProgram,    // the program's own call, or an implicit wait (OPENREG_LAUNCH_BLOCKING)
  kWait,       // the program waits for a stream
  kAllocator,  // an allocator waits, or records or queries an event, to find out when freed memory may be reused
  kPoison,     // the allocator fills new memory with the poison pattern
  kRedZone,    // the allocator fills the red zone of a block, see ToolHooks
  kTool,       // a tool calls for itself, which is no part of the program
};
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

// A guard for code that holds a lock while it launches. Its constructor lets tools gather the context of the thread,
// and until its destructor they gather none, so that no thread waits for the GIL under the lock. Make it before the
// lock.
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

// Reports to tools that something other than a task, such as a transfer between processes, accesses memory. The access
// has the place of the newest task of `stream`. `name` is a literal. Thread-safe.
OPENREG_RUNTIME_API void report_access(const char* name, c10::Stream stream, const Operands& operands);

// The byte of red zones. It is neither the poison byte nor one that programs write often.
inline constexpr int kRedZoneByte = 0xC5;

// Functions of a tool; each may be null. They must not throw.
struct ToolHooks {
  // Called on a thread that is about to call the caching allocator of device memory, while no lock of the device or of
  // the allocator is held, so that it may acquire the GIL. Only while an observer of observe_memory() exists.
  void (*before_memory)() = nullptr;
  // Called after pinned memory was allocated, and before it is released to the allocator. `size` is 0 for a release.
  // Runs without a lock.
  void (*pinned)(void* address, size_t size) = nullptr;
  // Called by report_access(), on its thread.
  void (*access)(const char* name, c10::Stream stream, const Operands& operands) = nullptr;
  // Bytes that the caching allocator adds after each new allocation of device memory, or 0. A kernel that changes them
  // writes beyond its allocation.
  size_t red_zone = 0;
  // Called after an allocation with a red zone, without a lock. If it returns true, a task of the allocation's stream,
  // whose CallReason is kRedZone, fills the zone with kRedZoneByte. It must return false while another stream may still
  // use the memory, because that would change what a correct program computes.
  bool (*fills_red_zone)(const void* address) = nullptr;
};

// Replaces the hooks of the process. A call of the previous hooks may still be running. Thread-safe.
OPENREG_RUNTIME_API void set_tool_hooks(const ToolHooks& hooks) noexcept;

}  // namespace openreg::runtime
