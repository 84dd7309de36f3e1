// SPDX-License-Identifier: BSD-3-Clause
// Implements the handler of the runtime's global fallback.
#include "fallback/fallback.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <chrono>
#include <string>

#include "fallback/boxed_cpu_call.h"
#include "fallback/statistics.h"
#include "launch/run_and_wait.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"
#include "support/device_check.h"

namespace openreg::ops {

namespace {

void require_cpu_kernel(const c10::OperatorHandle& op, c10::DispatchKey key) {
  const bool is_there = op.hasComputedKernelForDispatchKey(key);
  TORCH_CHECK_NOT_IMPLEMENTED(
      is_there || key == c10::DispatchKey::CPU, "operator ", op.operator_name(),
      " has no kernel for quantized tensors, neither for the openreg device nor for the CPU to fall back to. Make them "
      "dense with .dequantize() first.");
  TORCH_CHECK_NOT_IMPLEMENTED(
      is_there, "operator ", op.operator_name(),
      " has neither a kernel for the openreg device nor one for the CPU to fall back to. Register a "
      "kernel for PrivateUse1, or write the computation with other operators.");
}

// Returns true if the kernel may be a Python function, as those of other libraries. These need the GIL, which an engine
// must not take.
bool may_be_python(const c10::OperatorHandle& op) {
  return op.schema().name().rfind("aten::", 0) != 0;
}

void run_on_host(const c10::OperatorHandle& op, BoxedCpuCall& call, c10::DispatchKey key, c10::Stream stream) {
  runtime::synchronize_stream(stream);
  if (call.operands() != nullptr) {
    // An empty kernel represents the one that the host runs, because observers see only tasks of the device.
    runtime::launch(op.schema().name().c_str(), stream, [] {}, call.operands());
    runtime::synchronize_stream(stream);
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.redispatchBoxed(c10::DispatchKeySet(key), &call.cpu_stack());
}

}  // namespace

void run_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  check_can_fall_back(op);
  const c10::DispatchKey key = cpu_key_of(op, *stack);
  require_cpu_kernel(op, key);
  FallbackStatistics& statistics = FallbackStatistics::instance();
  statistics.admit(name);
  // Adds a range to the profiles of torch.profiler. Its name is built only while a profile is taken.
  RECORD_USER_SCOPE("openreg::fallback " + name);
  const auto begin = std::chrono::steady_clock::now();
  const c10::Device device = device_of_call(*stack, op.schema().arguments().size());
  const CurrentDeviceGuard current(device);
  const c10::Stream stream = runtime::current_stream(device.index());
  // Before the call exists, which copies operands and advances the generator. A captured kernel would refer to its
  // objects.
  check_sync_allowed(name.c_str(), stream);
  BoxedCpuCall call(op, *stack, device);
  if (may_be_python(op)) {
    run_on_host(op, call, key, stream);
  } else {
    call.run_on_engine(key);
  }
  const size_t bytes = call.finish();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  statistics.add(name, bytes, elapsed.count());
}

namespace {

// The runtime registers the fallback of dense tensors, and passes its calls to the handler.
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_fallback>());
}

}  // namespace

}  // namespace openreg::ops
