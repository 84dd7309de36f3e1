// SPDX-License-Identifier: BSD-3-Clause
// Registers the one fallback that PyTorch accepts for the dispatch key PrivateUse1.
#include "openreg/runtime/fallback.h"

#include <torch/library.h>

#include <atomic>

namespace openreg::runtime {

namespace {

std::atomic<FallbackHandler>& registered_handler() {
  static std::atomic<FallbackHandler> handler{nullptr};
  return handler;
}

void dispatch_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const FallbackHandler handler = registered_handler().load(std::memory_order_acquire);
  TORCH_CHECK_NOT_IMPLEMENTED(handler != nullptr, "operator ", op.operator_name(),
                              " cannot run on an openreg device, because no package with operators is installed or "
                              "imported. "
                              "Install it with: pip install " OPENREG_TENSORS_PACKAGE);
  handler(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&dispatch_fallback>());
}

}  // namespace

FallbackHandler set_fallback_handler(FallbackHandler handler) {
  return registered_handler().exchange(handler, std::memory_order_acq_rel);
}

}  // namespace openreg::runtime
