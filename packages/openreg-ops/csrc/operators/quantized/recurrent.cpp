// SPDX-License-Identifier: BSD-3-Clause
// Recurrent layers of quantised weights, torch.ao.nn.quantized.dynamic.LSTM and GRU, in one launch. They take objects
// of the host (packed.cpp) and, of a packed sequence, its batch sizes on the host.
#include <ATen/core/dispatch/Dispatcher.h>

#include "registration/cached_meta.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Dropout draws from the CPU's generator when the kernel runs.
void run_recurrent(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t first = stack->size() - schema.arguments().size();
  const auto argument = [&](const char* name) -> const c10::IValue& {
    return (*stack)[first + static_cast<size_t>(*schema.argumentIndexWithName(name))];
  };
  TORCH_CHECK_NOT_IMPLEMENTED(
      !argument("train").toBool() || argument("dropout").toDouble() == 0, op.operator_name(),
      ": the openreg device has no dropout between layers of quantized weights; call .eval() on "
      "the module, or make it with dropout=0");
  run_cached_meta(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  boxed<&run_recurrent>(library,
                        {"quantized_gru.data", "quantized_gru.input", "quantized_lstm.data", "quantized_lstm.input"});
}

}  // namespace

}  // namespace openreg::ops
