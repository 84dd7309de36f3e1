// SPDX-License-Identifier: BSD-3-Clause
#include "registration/layout.h"

#include "fallback/call.h"
#include "launch/wait_for.h"
#include "support/device_check.h"

namespace openreg::ops {

void run_composed(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack) {
  const CurrentDevice current(device_of_call(*stack, op.schema().arguments().size()));
  op.redispatchBoxed(c10::DispatchKeySet(key), stack);
}

void run_waiting(const c10::OperatorHandle& op, c10::DispatchKey key, torch::jit::Stack* stack) {
  FallbackCall call(op, *stack);
  const CurrentDevice current(call.device());
  prepare_to_wait(op.schema().name().c_str(), runtime::current_stream(call.device().index()));
  call.run_on_engine(key);
  call.finish();
}

}  // namespace openreg::ops
