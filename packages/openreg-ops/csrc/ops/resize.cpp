// SPDX-License-Identifier: BSD-3-Clause
// Minimal set: changing a tensor's size or storage.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "common/device_check.h"
#include "openreg/runtime/storage.h"

namespace openreg::ops {

namespace {

// Makes the storage large enough for the sizes and strides that the tensor has now.
void grow_storage(c10::TensorImpl& tensor) {
  const size_t needed = tensor.numel() == 0 ? 0
                                            : at::detail::computeStorageNbytes(
                                                  tensor.sizes(), tensor.strides(), tensor.dtype().itemsize(),
                                                  static_cast<size_t>(tensor.storage_offset()));
  c10::StorageImpl& storage = *tensor.unsafe_storage().unsafeGetStorageImpl();
  if (needed > storage.nbytes()) {
    runtime::resize_storage(storage, needed);
  }
}

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size,
                          std::optional<c10::MemoryFormat> memory_format) {
  auto& impl = *self.unsafeGetTensorImpl();
  if (self.sizes() != size) {
    impl.set_sizes_contiguous(size);
    grow_storage(impl);
  }
  if (memory_format.has_value()) {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    impl.empty_tensor_restride(*memory_format);
  }
  return self;
}

at::Tensor& set_storage_with_strides(at::Tensor& self, at::Storage source, int64_t storage_offset,
                                     c10::IntArrayRef size, c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, source, storage_offset, size, stride);
  auto& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(storage_offset);
  if (stride.empty()) {
    impl.set_sizes_contiguous(size);
  } else {
    impl.set_sizes_and_strides(size, stride);
  }
  grow_storage(impl);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_with_strides(self, std::move(source), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) {
    return self;
  }
  return set_storage_with_strides(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("resize_", TORCH_FN(resize_));
  library.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  library.impl("set_.source_Storage", TORCH_FN(set_storage));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_with_strides));
}

}  // namespace

}  // namespace openreg::ops
