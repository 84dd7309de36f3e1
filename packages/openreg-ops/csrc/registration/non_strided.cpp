// SPDX-License-Identifier: BSD-3-Clause
#include "registration/non_strided.h"

#include "fallback/boxed_cpu_call.h"
#include "launch/run_and_wait.h"
#include "support/device_check.h"

namespace openreg::ops {

void run_host_composite(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack) {
  const CurrentDeviceGuard current(device_of_call(*stack, op.schema().arguments().size()));
  op.redispatchBoxed(c10::DispatchKeySet(key), stack);
}

void run_synchronous(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack) {
  const c10::Device device = device_of_call(*stack, op.schema().arguments().size());
  const CurrentDeviceGuard current(device);
  check_sync_allowed(op.schema().name().c_str(), runtime::current_stream(device.index()));
  BoxedCpuCall call(op, *stack, device);
  call.run_on_engine(key);
  call.finish();
}

}  // namespace openreg::ops
