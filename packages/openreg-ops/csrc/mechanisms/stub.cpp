// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a stub. PyTorch's own at::native::abs_out checks the operands, allocates the output and calls the kernel
// that is registered for the device in abs_stub. The guide's page docs/operators/stub_list.md lists all stubs.
#include <ATen/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/abs_native.h>
#include <torch/library.h>

#include "kernels/abs.h"
#include "launch/launch.h"
#include "launch/raw_operands.h"
#include "support/device_check.h"

namespace openreg::ops {

namespace {

// Launches the kernel; at::native::abs_out calls it on the host. The iterator holds device tensors, already broadcast
// and with merged axes. The launch takes addresses, sizes and strides from it.
void abs_kernel(at::TensorIteratorBase& iterator) {
  if (!raw::contains(raw::AbsTypes(), iterator.dtype())) {
    // PyTorch's kernel supports dtypes that ours does not, and rejects some of them.
    launch(Operator{"aten::abs"}, iterator.device(0), &at::native::abs_out, iterator.tensor(1), iterator.tensor(0));
    return;
  }
  if (iterator.numel() == 0) {
    return;
  }
  raw::AbsArguments arguments{
      iterator.dtype(), runtime::kernel_view(iterator.data_ptr(1)), runtime::kernel_view(iterator.data_ptr(0)), {}};
  const int64_t size = iterator.element_size(0);
  for (int axis = 0; axis < iterator.ndim(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    arguments.axes.push_back(
        {iterator.shape()[i], {iterator.strides(1)[i] / size, iterator.strides(0)[i] / size}});  // strides are in bytes
  }
  launch_raw("aten::abs", iterator.device(0), &raw::abs, std::move(arguments), reads(iterator.tensor(1)),
             writes(iterator.tensor(0)));
}

at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) {
  // PyTorch does not check this for complex operands, because it copies their result to `out`.
  check_same_device("aten::abs", device_of("aten::abs", self, out), self, out);
  return at::native::abs_out(self, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // PyTorch implements abs and abs_ by this overload.
  library.impl("abs.out", TORCH_FN(abs_out));
}

}  // namespace

}  // namespace openreg::ops

// The macro names a type of the namespace in which the stub is declared.
namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &openreg::ops::abs_kernel)
}  // namespace at::native
