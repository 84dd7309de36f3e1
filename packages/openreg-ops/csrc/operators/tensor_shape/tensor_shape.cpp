// SPDX-License-Identifier: BSD-3-Clause
// Tensors as such: views outside of the minimal set, emptying one, and what PyTorch asks about their identity and
// memory. Nothing runs on the device.
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>

#include "openreg/runtime/allocator.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Whether `self` may take the place of `from`'s contents, as `parameter.data = tensor` does. Without this, PyTorch's
// own answer leaves this device out, and Module.to() makes new Parameters, which unties shared weights and orphans
// optimisers.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto plain = [](const at::Tensor& tensor) {
    return tensor.layout() == c10::kStrided && !tensor.is_quantized() && !tensor.is_nested() &&
           (tensor.device().is_cpu() || tensor.device().type() == runtime::kDeviceType);
  };
  return plain(self) && plain(from);
}

// Keeps the memory from being reused before the work that the stream holds when the tensor is freed.
void record_stream(at::Tensor& self, at::Stream stream) {
  runtime::device_allocator().recordStream(self.storage().data_ptr(), stream);
}

// The forms that give a tensor a size or another storage are in the minimal set.
at::Tensor& set_nothing(at::Tensor& self) {
  const CurrentDevice current(self.device());
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
