// SPDX-License-Identifier: BSD-3-Clause
// Minimal set: changing a tensor's size or storage.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <torch/library.h>

#include <algorithm>

#include "minimal/selection.h"
#include "openreg/runtime/storage.h"

namespace openreg::ops {

namespace {

// Grows the storage, if necessary, for these sizes and strides; empty strides stand for contiguous ones. Call it before
// the tensor changes, so that a tensor whose storage cannot grow stays as it is.
void grow_storage(c10::TensorImpl& tensor, c10::IntArrayRef size, c10::IntArrayRef stride, int64_t storage_offset) {
  if (std::find(size.begin(), size.end(), 0) != size.end()) {
    return;
  }
  const size_t item = tensor.dtype().itemsize();
  const auto offset = static_cast<size_t>(storage_offset);
  const size_t needed = stride.empty() ? at::detail::computeStorageNbytesContiguous(size, item, offset)
                                       : at::detail::computeStorageNbytes(size, stride, item, offset);
  c10::StorageImpl& storage = *tensor.unsafe_storage().unsafeGetStorageImpl();
  if (needed > storage.nbytes()) {
    runtime::resize_storage(storage, needed);
  }
}

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size,
                          std::optional<c10::MemoryFormat> memory_format) {
  TORCH_CHECK(memory_format != c10::MemoryFormat::Preserve, "resize_: unsupported memory format ", *memory_format,
              "; give contiguous_format or a channels-last one");
  at::detail::check_size_nonnegative(size);
  auto& impl = *self.unsafeGetTensorImpl();
  const size_t old_bytes = self.storage().nbytes();
  if (self.sizes() != size || memory_format.has_value()) {
    grow_storage(impl, size, {}, impl.storage_offset());
    impl.set_sizes_contiguous(size);
  }
  if (memory_format.has_value()) {
    impl.empty_tensor_restride(*memory_format);
  }
  const at::Context& context = at::globalContext();
  if (C10_UNLIKELY(context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(old_bytes));
  }
  return self;
}

at::Tensor& set_storage_with_strides(at::Tensor& self, at::Storage source, int64_t storage_offset,
                                     c10::IntArrayRef size, c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, source, storage_offset, size, stride);
  auto& impl = *self.unsafeGetTensorImpl();
  grow_storage(impl, size, stride, storage_offset);
  impl.set_storage_offset(storage_offset);
  if (stride.empty()) {
    impl.set_sizes_contiguous(size);
  } else {
    impl.set_sizes_and_strides(size, stride);
  }
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
  minimal::implement(library, "resize_", TORCH_FN(resize_));
  minimal::implement(library, "set_.source_Tensor", TORCH_FN(set_tensor));
  minimal::implement(library, "set_.source_Storage", TORCH_FN(set_storage));
  minimal::implement(library, "set_.source_Storage_storage_offset", TORCH_FN(set_storage_with_strides));
}

}  // namespace

}  // namespace openreg::ops
