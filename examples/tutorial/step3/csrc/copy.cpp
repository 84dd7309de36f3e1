// SPDX-License-Identifier: BSD-3-Clause
// The minimal operators, second part: data from and to the device.
#include <ATen/MemoryOverlap.h>
#include <torch/library.h>

#include <memory>

#include "launch.h"

namespace pocket {

namespace {

bool on_device(const at::Tensor& tensor) {
  return tensor.device().type() == kType;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool /*non_blocking*/) {
  for (const auto& tensor : {self, dst}) {
    TORCH_CHECK(on_device(tensor) || tensor.is_cpu(), "copy between ", self.device(), " and ", dst.device(),
                ": go by way of the CPU");
  }
  // Here, because the kernel's views hide that both tensors are of one storage.
  at::assert_no_internal_overlap(dst);
  at::assert_no_partial_overlap(dst, self);
  const at::Tensor source = self.expand(dst.sizes());
  const c10::Device device = on_device(dst) ? dst.device() : self.device();
  launch(device, [from = host_view(source), to = host_view(dst)] { to.copy_(from); });
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  const auto result = std::make_shared<at::Scalar>();  // shared with the kernel
  launch(self.device(), [result, view = host_view(self)] { *result = view.item(); });
  return *result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

// A copy resolves these bits itself. Without these lines PyTorch would resolve them first, by a copy, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

}  // namespace pocket
