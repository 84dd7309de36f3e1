// SPDX-License-Identifier: BSD-3-Clause
// A stub: PyTorch's own function prepares the operands and calls the kernel that is registered for the device.
#include <ATen/TensorIterator.h>
#include <ATen/native/Fill.h>
#include <ATen/ops/fill_native.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

#include "launch.h"

namespace pocket {

namespace {

void fill_kernel(at::TensorIterator& iterator, const c10::Scalar& value) {
  at::scalar_tensor(value, iterator.dtype(0));  // throws here, not in the kernel, if the dtype has no such number
  launch(iterator.device(0), [output = host_view(iterator.tensor(0)), value] { output.fill_(value); });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("fill_.Scalar", static_cast<at::Tensor& (*)(at::Tensor&, const at::Scalar&)>(&at::native::fill_));
}

}  // namespace

}  // namespace pocket

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(fill_stub, &pocket::fill_kernel)

}  // namespace at::native
