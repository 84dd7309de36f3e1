// SPDX-License-Identifier: BSD-3-Clause
// An override of one_hot(), which PyTorch composes of other operators for every device. A kernel for PrivateUse1 takes
// precedence over that, also above autograd.
#include <ATen/ops/aminmax.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "launch/run_and_wait.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

int64_t greatest_of(const at::Tensor& classes) {
  return classes.max().item<int64_t>();
}

void check_classes(const at::Tensor& classes, int64_t count) {
  const auto [least, greatest] = at::aminmax(classes);
  TORCH_CHECK(least.item<int64_t>() >= 0, "one_hot: class values must be non-negative, but one is ",
              least.item<int64_t>());
  TORCH_CHECK(greatest.item<int64_t>() < count, "one_hot: class values must be smaller than num_classes, ", count,
              ", but one is ", greatest.item<int64_t>());
}

// Checks the classes in a synchronous launch, except during a capture. PyTorch checks them only on the CPU. A wrong
// class would be an index out of bounds, and cause the device's sticky error.
at::Tensor one_hot(const at::Tensor& self, int64_t num_classes) {
  constexpr Operator kOneHot{"aten::one_hot"};
  TORCH_CHECK(self.scalar_type() == at::kLong, kOneHot.name, ": the classes have to be of dtype int64, but are of ",
              self.scalar_type());
  const OperandDeviceGuard device(kOneHot, self);
  if (num_classes == -1) {
    TORCH_CHECK(self.numel() > 0, kOneHot.name,
                ": the number of classes of an empty tensor is unknown; pass num_classes");
    num_classes = 1 + run_kernel_and_wait<const at::Tensor&>(kOneHot.name, device, &greatest_of, self);
  }
  if (self.numel() > 0) {
    launch(kOneHot, device, SyncPolicy::kSyncUnlessCapturing, &check_classes, self, num_classes);
  }
  TORCH_CHECK(num_classes > 0, kOneHot.name, ": num_classes has to be positive, or -1, but is ", num_classes);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(num_classes);
  at::Tensor output = at::zeros(sizes, self.options());
  return self.numel() == 0 ? output : output.scatter_(-1, self.unsqueeze(-1), 1);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::one_hot>(library, one_hot);
}

// The result has no derivative. Without this line autograd would warn that our kernel has none registered. A
// fallthrough lets the call pass to the next key.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("one_hot", torch::CppFunction::makeFallthrough());
}

}  // namespace

}  // namespace openreg::ops
