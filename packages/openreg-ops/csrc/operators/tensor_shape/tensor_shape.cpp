// SPDX-License-Identifier: BSD-3-Clause
// Views outside of the minimal set, set_() without a source, and queries about the identity and memory of tensors. None
// of them launches a kernel.
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>

#include "openreg/runtime/allocator.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns true if `self` may get the contents of `from`, as in `parameter.data = tensor`. PyTorch's function would
// return false for this device. Module.to() would then make new Parameters, which unties shared weights and leaves
// optimizers with the old ones.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.layout() == c10::kStrided && !tensor.is_quantized() && !tensor.is_nested() &&
           (tensor.device().is_cpu() || tensor.device().type() == runtime::kDeviceType);
  };
  return plain(self) && plain(from);
}

// Prevents reuse of the memory before the tasks are complete that are in the stream when the tensor is freed.
void record_stream(at::Tensor& self, at::Stream stream) {
  runtime::device_allocator().recordStream(self.storage().data_ptr(), stream);
}

// Sets an empty storage. The overloads that take a size or another storage are in the minimal set.
at::Tensor& set_nothing(at::Tensor& self) {
  const CurrentDeviceGuard current(self.device());
  const at::Storage nothing(c10::Storage::use_byte_size_t(), 0, &runtime::device_allocator(), true);
  return self.set_(nothing, 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_has_compatible_shallow_copy_type>(library, has_compatible_shallow_copy_type);
  function<op::is_set_to>(library, at::native::is_set_to);
  function<op::record_stream>(library, record_stream);
  function<op::set_>(library, set_nothing);
  function<op::unfold>(library, at::native::unfold);
  function<op::view_as_complex>(library, at::native::view_as_complex);
  function<op::view_as_real>(library, at::native::view_as_real);
}

}  // namespace

}  // namespace openreg::ops
