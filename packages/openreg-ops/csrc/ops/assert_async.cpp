// SPDX-License-Identifier: BSD-3-Clause
// Assertions about data that do not wait: one that fails becomes the device's error at the next synchronisation.
#include <ATen/ops/is_nonzero.h>
#include <torch/library.h>

#include <string>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

void assert_kernel(const at::Tensor& self, const std::string& message) {
  TORCH_CHECK(at::is_nonzero(self), message);
}

void assert_async_msg(const at::Tensor& self, std::string_view message) {
  constexpr const char* kName = "aten::_assert_async";
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  const CurrentDevice current(self.device());
  launch_kernel<decltype(&assert_kernel), const at::Tensor&, const std::string&>(kName, self.device(), &assert_kernel,
                                                                                 self, std::string(message));
}

void assert_async(const at::Tensor& self) {
  assert_async_msg(self, "Expected Tensor with single nonzero value, but got zero");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_assert_async", TORCH_FN(assert_async));
  library.impl("_assert_async.msg", TORCH_FN(assert_async_msg));
}

}  // namespace

}  // namespace openreg::ops
