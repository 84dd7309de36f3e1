// SPDX-License-Identifier: BSD-3-Clause
// Operators whose result the host needs before it can go on: a number, or a shape that depends on data.
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

// Throws c10::Error with `name` while the stream is capturing, and where the sync debug mode forbids to wait.
void prepare_to_wait(const char* name, c10::Stream stream);

// Runs `function()` on the engine, after the earlier work of the device's current stream, and waits for it. What
// it throws is thrown here, with the operator's name: it concerns this call alone, and the device stays healthy.
// `operands` as in runtime::launch().
void run_and_wait(const char* name, c10::Stream stream, c10::function_ref<void()> function,
                  const runtime::Operands* operands);

// Both, for `compute()`, which may refer to variables of the caller.
template <class Compute>
void wait_for(const char* name, c10::Device device, Compute compute, const runtime::Operands* operands) {
  const c10::Stream stream = runtime::current_stream(device.index());
  prepare_to_wait(name, stream);
  run_and_wait(name, stream, compute, operands);
}

// Gives what `kernel(args...)` gives on aliases, having waited for it.
template <class... Args, class Kernel>
auto wait_for_kernel(const char* name, c10::Device device, Kernel kernel, Args... args) {
  runtime::Aliases aliases(name);
  constexpr std::array<orAccess, sizeof...(Args)> kAccesses = accesses_by_type<Args...>();
  OwnedArgumentsOf<Args...> owned(aliases, kAccesses.data(), args...);
  std::invoke_result_t<Kernel, Args...> result{};
  const auto compute = [&] {
    runtime::AliasStorages storages;
    result = owned.apply(kernel, storages);
  };
  wait_for(name, device, compute, aliases.operands());
  return result;
}

}  // namespace openreg::ops
