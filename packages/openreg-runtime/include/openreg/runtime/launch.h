// SPDX-License-Identifier: BSD-3-Clause
// Launches: how a kernel, any callable, gets into the queue of a stream.
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

// Whether the calling thread takes numbers too small to be normal for zero. torch.set_flush_denormal() sets that for
// the thread that calls it; a launch takes it along.
inline bool flushes_denormals() {
  static const volatile float smallest = std::numeric_limits<float>::denorm_min();
  return smallest == 0.0F;
}

// Prepares the calling engine thread for an ATen kernel: inference mode, as many threads as OPENREG_NUM_THREADS says,
// and small numbers as the launching thread takes them.
OPENREG_RUNTIME_API void prepare_engine_thread(bool flush_denormals);

// The address at which a kernel finds the byte of a device address.
OPENREG_RUNTIME_API void* kernel_view(const void* device_address);

// Enqueues a kernel. Where that has to wait, because the stream's queue is full say, other threads of Python go on: a
// kernel before it may need one. Owns `kernel.state` from the call on, also when it throws; `kernel.release` is not
// null. Operands as of launch().
OPENREG_RUNTIME_API void launch_kernel(c10::Stream stream, const orKernel& kernel, const Operands* operands = nullptr);

// To be called where a kernel catches an exception: writes the reason that it returns with the result.
OPENREG_RUNTIME_API orError_t describe_exception(char* message, size_t message_size) noexcept;

// Enqueues what `make()` gives, which is made in its place: a large callable is not moved. `operands` may be filled
// while it is made. See launch().
template <class Make>
void launch_made(const char* name, c10::Stream stream, Make&& make, const Operands* operands = nullptr) {
  struct State final : LaunchOwned {
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

// Enqueues `kernel()` on a stream and returns at once. The callable is moved into the launch and destroyed on the
// engine thread: it owns no device tensor and nothing that has a Python object. It must not change what it captured,
// because a graph may run it again. An exception that it throws becomes the device's sticky error, with `name`.
//
// `name` must live until the kernel ran (a literal, or the name inside an operator's schema).
//
// `operands` are all that the kernel reads and writes; null when nobody asks (see Operands::wanted()), or when they are
// not known.
template <class Kernel>
void launch(const char* name, c10::Stream stream, Kernel&& kernel, const Operands* operands = nullptr) {
  launch_made(name, stream, [&]() -> std::decay_t<Kernel> { return std::forward<Kernel>(kernel); }, operands);
}

// The same on the current stream of a device.
template <class Kernel>
void launch(const char* name, c10::DeviceIndex device, Kernel&& kernel, const Operands* operands = nullptr) {
  launch(name, current_stream(device), std::forward<Kernel>(kernel), operands);
}

}  // namespace openreg::runtime
