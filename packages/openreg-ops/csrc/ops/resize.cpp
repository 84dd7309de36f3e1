// SPDX-License-Identifier: BSD-3-Clause
// Emptying a tensor; the forms that give it a size or another storage are in the minimal set.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "common/device_check.h"
#include "openreg/runtime/allocator.h"

namespace openreg::ops {

namespace {

at::Tensor& set_nothing(at::Tensor& self) {
  const CurrentDevice current(self.device());
  const at::Storage nothing(c10::Storage::use_byte_size_t(), 0, &runtime::device_allocator(), true);
  return self.set_(nothing, 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("set_", TORCH_FN(set_nothing));
}

}  // namespace

}  // namespace openreg::ops
