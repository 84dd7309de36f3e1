// SPDX-License-Identifier: BSD-3-Clause
// Operators whose result the host needs before it can go on: a number, or a shape that depends on data.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/arguments.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/sync_debug.h"

namespace openreg::ops {

// Runs `compute()` on the engine, after the earlier work of the device's current stream, and waits for it. It may refer
// to variables of the caller. An exception that it throws is thrown here: it concerns this call alone, and the device
// stays healthy. Throws c10::Error with `name` while the stream is capturing.
template <class Compute>
void wait_for(const char* name, c10::Device device, Compute compute) {
  const c10::Stream stream = runtime::current_stream(device.index());
  runtime::refuse_capture(name, stream);
  runtime::object_to_waiting();
  std::exception_ptr failure;
  runtime::launch(name, stream, [&compute, &failure] {
    try {
      compute();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  runtime::synchronize_stream(stream);
  if (failure) {
    std::rethrow_exception(failure);
  }
}

// Gives what `kernel(args...)` gives on aliases, having waited for it.
template <class... Args, class Kernel>
auto wait_for_kernel(const char* name, c10::Device device, Kernel kernel, Args... args) {
  runtime::Aliases aliases(name);
  std::tuple<Owned<Args>...> owned{Owned<Args>(args, aliases)...};
  std::invoke_result_t<Kernel, Args...> result{};
  wait_for(name, device, [&] {
    runtime::AliasStorages storages;
    std::apply([&](auto&... argument) { result = kernel(argument.get(storages)...); }, owned);
  });
  return result;
}

}  // namespace openreg::ops
