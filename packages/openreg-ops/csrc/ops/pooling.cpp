// SPDX-License-Identifier: BSD-3-Clause
// Adaptive average pooling with backward; other pooling stands in the structured table.
#include "common/launch_on.h"

#include <ATen/ops/_adaptive_avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool2d_cpu_dispatch.h>
#include <torch/library.h>

namespace openreg::ops {

namespace {

void forward_kernel(const at::Tensor& self, c10::IntArrayRef output_size, at::Tensor& output) {
  at::cpu::adaptive_avg_pool2d_outf(self, output_size, output);
}

at::Tensor adaptive_avg_pool2d(const at::Tensor& self, c10::IntArrayRef output_size) {
  constexpr const char* kName = "aten::_adaptive_avg_pool2d";
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ",
              self.sizes());
  TORCH_CHECK(self.size(-2) > 0 && self.size(-1) > 0, "adaptive_avg_pool2d(): expected rows and columns, but got ",
              self.sizes());
  const CurrentDevice current(self.device());
  std::vector<int64_t> sizes = self.sizes().vec();
  std::copy(output_size.begin(), output_size.end(), sizes.end() - 2);
  at::Tensor output = make_output(sizes, {}, self.options().memory_format(self.suggest_memory_format()));
  launch_kernel<decltype(&forward_kernel), const at::Tensor&, c10::IntArrayRef, at::Tensor&>(
      kName, self.device(), &forward_kernel, self, output_size, output);
  return output;
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& self, at::Tensor& result) {
  result.copy_(at::cpu::_adaptive_avg_pool2d_backward(grad, self));
}

at::Tensor adaptive_avg_pool2d_backward(const at::Tensor& grad, const at::Tensor& self) {
  constexpr const char* kName = "aten::_adaptive_avg_pool2d_backward";
  check_same_device(kName, self.device(), grad);
  const CurrentDevice current(self.device());
  at::Tensor result = make_output_in_format_of(self);
  launch_kernel<decltype(&backward_kernel), const at::Tensor&, const at::Tensor&, at::Tensor&>(
      kName, self.device(), &backward_kernel, grad, self, result);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_adaptive_avg_pool2d", TORCH_FN(adaptive_avg_pool2d));
  library.impl("_adaptive_avg_pool2d_backward", TORCH_FN(adaptive_avg_pool2d_backward));
}

}  // namespace

}  // namespace openreg::ops
