// SPDX-License-Identifier: BSD-3-Clause
// A kernel written by hand: check, allocate, launch, and the loop itself.
#include <ATen/Dispatch.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "dtypes.h"
#include "launch.h"

namespace pocket {

namespace {

void relu_kernel(const at::Tensor& input, const at::Tensor& output) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, input.scalar_type(), "relu", [&] {
    const auto* from = input.const_data_ptr<scalar_t>();
    auto* to = output.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < input.numel(); ++i) {
      to[i] = from[i] < scalar_t(0) ? scalar_t(0) : from[i];
    }
  });
}

at::Tensor relu(const at::Tensor& self) {
  check_dtype("relu", self.scalar_type(), is_float);
  const c10::DeviceGuard guard(self.device());
  // The loop walks through memory, so there must be no gaps; the output gets the strides of the input.
  const at::Tensor input = self.is_non_overlapping_and_dense() ? self : self.contiguous();
  at::Tensor output = at::empty_like(input);
  launch(self.device(), [from = host_view(input), to = host_view(output)] { relu_kernel(from, to); });
  return output;
}

at::Tensor& relu_(at::Tensor& self) {
  return self.copy_(relu(self));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("relu", TORCH_FN(relu));
  library.impl("relu_", TORCH_FN(relu_));
}

}  // namespace

}  // namespace pocket
