// SPDX-License-Identifier: BSD-3-Clause
// Every operator without a kernel: PyTorch copies the operands to the CPU, computes there and copies the result back.
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

namespace pocket {

namespace {

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  // A view cannot go that way: its result would not share memory. Such operators belong into tensors.cpp.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace

}  // namespace pocket
