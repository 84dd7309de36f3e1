// SPDX-License-Identifier: BSD-3-Clause
// Launches: functions that enqueue a kernel, which is any callable, on a stream. An engine thread of the driver
// executes the kernel later.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "openreg.h"
#include "openreg/runtime/export.h"
#include "openreg/runtime/launch_memory.h"
#include "openreg/runtime/operands.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

// Returns true if the calling thread flushes denormal numbers to zero. torch.set_flush_denormal() sets this mode for
// its calling thread only, so a launch passes the mode to the engine thread.
inline bool flushes_denormals() {
  static const volatile float smallest = std::numeric_limits<float>::denorm_min();
  return smallest == 0.0F;
}

// Prepares the calling engine thread for an ATen kernel: sets inference mode, the number of threads of
// OPENREG_NUM_THREADS and flushing of denormal numbers, and disables autograd and warnings. `flush_denormals` is the
// result of flushes_denormals() on the thread that launched the kernel.
OPENREG_RUNTIME_API void prepare_engine_thread(bool flush_denormals);

// Converts a device address into its address in the kernel view, the mapping of device memory that kernels dereference,
// because an access to the device address itself faults. Throws c10::Error if the driver cannot start. Thread-safe.
OPENREG_RUNTIME_API void* kernel_view(const void* device_address);

// Enqueues a kernel of the driver's type; launch() calls this. Blocks while the stream's queue is full, for example.
// Releases the GIL while it blocks, because an earlier task may complete only after another Python thread has run.
// Takes ownership of `kernel.state`, also if it throws, and `kernel.release` must not be null. `operands` and errors
// are those of launch(). Thread-safe.
OPENREG_RUNTIME_API void launch_kernel(c10::Stream stream, const orKernel& kernel, const Operands* operands = nullptr);

// Writes the text of the current exception to `message`, at most `message_size` bytes, and returns the code that the
// kernel must return. Kernels of the driver's type call this in a catch block.
OPENREG_RUNTIME_API orError_t describe_exception(char* message, size_t message_size) noexcept;

// Same as `launch()` below, except that the kernel is the result of `make()`, constructed in place, because a large
// callable is expensive to move. `make()` may add to `operands`.
template <class Make>
void launch_emplace(const char* name, c10::Stream stream, Make&& make, const Operands* operands = nullptr) {
  struct State final : PooledLaunchState {
    explicit State(Make& maker) : kernel(maker()) {}
    decltype(make()) kernel;
    const bool flush_denormals = flushes_denormals();
  };
  const auto run = [](void* pointer, char* message, size_t message_size) -> orError_t {
    try {
      auto& state = *static_cast<State*>(pointer);
      prepare_engine_thread(state.flush_denormals);
      state.kernel();
      return orSuccess;
    } catch (...) {
      return describe_exception(message, message_size);
    }
  };
  launch_kernel(stream, {name, run, new State(make), [](void* pointer) { delete static_cast<State*>(pointer); }},
                operands);
}

// Enqueues `kernel()` on a stream. Blocks only if the queue is full, if launches are synchronous
// (OPENREG_LAUNCH_BLOCKING) or if tasks are deferred (executed only while the host waits, as with
// OPENREG_SCHEDULE_SEED), and releases the GIL while it blocks. The callable is moved into the launch, and the engine
// thread destroys it. It must therefore own no device tensor and nothing that has a Python object. It must not change
// its captures, because a graph may execute it again. An exception that it throws becomes the device's sticky error,
// whose text contains `name`.
//
// `name` must stay valid until the kernel has run and, in a capture, as long as the graph. A literal and the name in an
// operator's schema do.
//
// `operands` are all memory that the kernel reads and writes. They may be null if no observer, such as a profiler or a
// sanitizer, requires them (see Operands::wanted()), or if they are unknown.
//
// Throws the device's sticky error, a c10::AcceleratorError. Throws c10::Error inside a callback of observe_memory().
// Thread-safe.
template <class Kernel>
void launch(const char* name, c10::Stream stream, Kernel&& kernel, const Operands* operands = nullptr) {
  launch_emplace(name, stream, [&]() -> std::decay_t<Kernel> { return std::forward<Kernel>(kernel); }, operands);
}

// Same as `launch()` on a stream, except that the stream is the calling thread's current stream of `device`. An index
// of -1 means the current device.
template <class Kernel>
void launch(const char* name, c10::DeviceIndex device, Kernel&& kernel, const Operands* operands = nullptr) {
  launch(name, current_stream(device), std::forward<Kernel>(kernel), operands);
}

}  // namespace openreg::runtime
