// SPDX-License-Identifier: BSD-3-Clause
// The minimal operators, first part: making tensors, resizing them, and views.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/strides.h>
#include <torch/library.h>

#include "device.h"

namespace pocket {

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_options(const char* name, std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::kStrided) == c10::kStrided, name, ": pocket has no layout ", *layout,
                              "; use torch.strided");
  TORCH_CHECK(!pin_memory.value_or(false), name, ": only CPU tensors can be pinned; drop pin_memory or the device");
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format) {
  check_options("empty", layout, pin_memory);
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &allocator(), kKeys, c10::dtype_or_default(dtype), memory_format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  check_options("empty_strided", layout, pin_memory);
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, &allocator(), kKeys, c10::dtype_or_default(dtype));
}

// Makes a tensor's storage large enough for a size, from the tensor's offset on.
void grow_storage(c10::TensorImpl& tensor, c10::IntArrayRef size, c10::IntArrayRef stride) {
  const size_t needed =
      at::detail::computeStorageNbytes(size, stride, tensor.dtype().itemsize(), tensor.storage_offset());
  c10::StorageImpl& storage = *tensor.unsafe_storage().unsafeGetStorageImpl();
  if (needed > storage.nbytes()) {
    resize_storage(storage, needed);
  }
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size,
                         std::optional<c10::MemoryFormat> memory_format) {
  const auto format = memory_format.value_or(c10::MemoryFormat::Contiguous);
  at::detail::check_size_nonnegative(size);
  if (self.sizes() != size || memory_format.has_value()) {
    auto& impl = *self.unsafeGetTensorImpl();
    grow_storage(impl, size, c10::contiguous_strides(size));
    impl.set_sizes_contiguous(size);
    impl.empty_tensor_restride(format);
  }
  return self;
}

at::Tensor& set_storage_with_strides(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size,
                                     c10::IntArrayRef stride) {
  const auto contiguous = c10::contiguous_strides(size);
  const c10::IntArrayRef strides = stride.empty() ? contiguous : stride;
  at::native::checkSetStorage(self, source, offset, size, strides);
  auto& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(offset);
  grow_storage(impl, size, strides);
  impl.set_sizes_and_strides(size, strides);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_with_strides(self, std::move(source), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage_with_strides(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("resize_", TORCH_FN(resize));
  library.impl("set_.source_Storage", TORCH_FN(set_storage));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_with_strides));
  library.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  // PyTorch's own functions: a view is a matter of sizes and strides, on every device.
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
}

}  // namespace

}  // namespace pocket
