// SPDX-License-Identifier: BSD-3-Clause
// Recurrent layers with quantized weights, torch.ao.nn.quantized.dynamic.LSTM and GRU, in one launch. Their weights are
// host objects (packed.cpp), and the batch sizes of a packed sequence are also on the host.
#include <ATen/core/dispatch/Dispatcher.h>

#include "registration/cached_meta.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Throws NotImplementedError for dropout, because the kernel would draw from the CPU's generator when it runs.
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
