// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "openreg.h"
#include "openreg/runtime/export.h"
#include "openreg/runtime/launch_memory.h"
#include "openreg/runtime/operands.h"
#include "openreg/runtime/status.h"
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

// Enqueues what `make()` gives, which is made in its place: a large callable is not moved. `operands` may be filled
// while it is made. See launch().
template <class Make>
void launch_made(const char* name, c10::Stream stream, Make&& make, const Operands* operands = nullptr) {
  struct State final : LaunchOwned {
    explicit State(Make& maker) : kernel(maker()) {}
    decltype(make()) kernel;
    const bool flush_denormals = flushes_denormals();
  };
  auto state = std::make_unique<State>(make);
  orKernel task{};
  task.name = name;
  task.state = state.get();
  task.release = [](void* pointer) { delete static_cast<State*>(pointer); };
  task.function = [](void* pointer, char* message, size_t message_size) -> orError_t {
    try {
      auto& launched = *static_cast<State*>(pointer);
      prepare_engine_thread(launched.flush_denormals);
      launched.kernel();
      return orSuccess;
    } catch (const c10::Error& error) {
      std::snprintf(message, message_size, "%s", error.what_without_backtrace());
    } catch (const std::exception& error) {
      std::snprintf(message, message_size, "%s", error.what());
    } catch (...) {
      std::snprintf(message, message_size, "an exception that is not a std::exception");
    }
    return orErrorLaunchFailure;
  };
  if (C10_LIKELY(operands == nullptr)) {
    OPENREG_CHECK(orLaunchKernel(native_handle(stream), &task));
  } else {
    OPENREG_CHECK(orLaunchKernelWithOperands(native_handle(stream), &task, operands->data(), operands->size()));
  }
  state.release();  // the launch owns it now
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
