// SPDX-License-Identifier: BSD-3-Clause
// A stub behind an operator that PyTorch composes for every device: kaiser_window() makes the window and calls what the
// device has in kaiser_window_stub, which neither a fallback nor another kernel can stand in for.
#include <ATen/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/kaiser_window.h>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

// A periodic window is one of `length` values without the last.
void kernel(int64_t length, double beta, at::Tensor& window) {
  window.copy_(at::kaiser_window(length, /*periodic=*/false, beta, window.options()).narrow(0, 0, window.numel()));
}

// Called on the host. The iterator's operand holds the positions 0, 1, ..., which the kernel knows.
void launch_kaiser_window(at::TensorIteratorBase& iterator, int64_t length, double beta) {
  at::Tensor window = iterator.tensor(0);
  const CurrentDevice current(window.device());
  launch_function("aten::kaiser_window", window.device(), &kernel, length, beta, window);
}

}  // namespace

}  // namespace openreg::ops

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(kaiser_window_stub, &openreg::ops::launch_kaiser_window)
}  // namespace at::native
