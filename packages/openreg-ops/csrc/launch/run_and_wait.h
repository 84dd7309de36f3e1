// SPDX-License-Identifier: BSD-3-Clause
// Synchronous kernels, for operators whose result the host needs: a number, or a shape that depends on data.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

#include <array>
#include <type_traits>
#include <utility>

#include "launch/access.h"
#include "launch/arguments.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/stream.h"

namespace openreg::ops {

// Throws c10::Error, with `name`, if the stream is capturing. Warns or throws c10::Error if the mode of
// torch.openreg.set_sync_debug_mode() requires it. Thread-safe.
void check_sync_allowed(const char* name, c10::Stream stream);

// Enqueues `function()` on `stream` and blocks until it has run. Rethrows the function's exception, and adds the
// operator's name to a c10::Error. The exception concerns only this call, so it does not become the device's sticky
// error. Throws a sticky error that the device already has. `operands` are those of runtime::launch(). Releases the GIL
// while it blocks.
void run_and_wait(const char* name, c10::Stream stream, c10::function_ref<void()> function,
                  const runtime::Operands* operands);

// Calls check_sync_allowed() and run_and_wait() on the device's current stream. `compute()` may refer to variables of
// the caller.
template <class Compute>
void wait_for(const char* name, c10::Device device, Compute compute, const runtime::Operands* operands) {
  const c10::Stream stream = runtime::current_stream(device.index());
  check_sync_allowed(name, stream);
  run_and_wait(name, stream, compute, operands);
}

// Returns the result of `kernel(args...)` on aliases (CPU tensors over the bytes of device tensors). Blocks until the
// kernel has run, and throws as wait_for() does.
template <class... Args, class Kernel>
auto run_kernel_and_wait(const char* name, c10::Device device, Kernel kernel, Args... args) {
  runtime::AliasBuilder aliases(name);
  OwnedArgumentsOf<Args...> owned(aliases, kAccessesByType<Args...>.data(), args...);
  std::invoke_result_t<Kernel, Args...> result{};
  const auto compute = [&] {
    runtime::AliasStorages storages;
    result = owned.apply(kernel, storages);
  };
  wait_for(name, device, compute, aliases.operands());
  return result;
}

}  // namespace openreg::ops
