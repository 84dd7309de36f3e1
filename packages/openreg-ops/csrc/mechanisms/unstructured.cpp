// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: an operator with a meta function of our own, because PyTorch has none in C++. The function checks the
// operands with PyTorch's messages, determines the output, allocates it and launches. The short form is
// unstructured<...> (csrc/registration/unstructured.h).
//
// Source of the checks: aten/src/ATen/native/ChanelShuffle.cpp (sic).
#include <ATen/core/Tensor.h>
#include <ATen/ops/channel_shuffle_native.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

at::Tensor channel_shuffle(const at::Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  TORCH_CHECK(self.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", self.size(1),
              " channels and ", groups, " groups.");
  // The kernel rejects some dtypes, but runs too late to throw on the calling line, so one CPU element is tried.
  if (self.scalar_type() != at::kFloat && self.numel() != 0) {
    at::native::channel_shuffle(at::empty({1, 1, 1}, self.options().device(at::kCPU)), 1);
  }

  const c10::DeviceGuard guard(self.device());
  at::Tensor output = at::empty(self.sizes(), self.options().memory_format(self.suggest_memory_format()));
  // The kernel runs later, on another thread, on aliases: CPU tensors over the same bytes without ownership.
  runtime::AliasBuilder aliases("aten::channel_shuffle");
  auto kernel = [input = aliases(self), groups, result = aliases.as(orAccessWrite)(output)]() mutable {
    result.copy_(at::native::channel_shuffle(input, groups));
  };
  runtime::launch("aten::channel_shuffle", self.device().index(), std::move(kernel), aliases.operands());
  return output;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("channel_shuffle", TORCH_FN(channel_shuffle));
}

}  // namespace

}  // namespace openreg::ops
