// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch asks about the identity of tensors and their memory.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  library.impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace

}  // namespace openreg::ops
