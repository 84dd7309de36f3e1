// SPDX-License-Identifier: BSD-3-Clause
// Operators that change the shape or the storage of quantized tensors. None of them launches a kernel.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>

#include "openreg/runtime/storage.h"
#include "registration/declare.h"
#include "registration/non_strided.h"
#include "support/quantized.h"

namespace openreg::ops {

namespace {

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
  TORCH_CHECK(!format.has_value(), "Unsupported memory format for quantized tensor resize ", *format);
  TORCH_CHECK(quantizer_of(self)->qscheme() == c10::kPerTensorAffine,
              "Can only resize quantized tensors with per-tensor schemes!");
  at::detail::check_size_nonnegative(size);
  at::Tensor integers = integers_of(self);
  TORCH_CHECK_NOT_IMPLEMENTED(!is_below_byte(self.scalar_type()), "resize_: the openreg device does not resize ",
                              self.scalar_type(), "; make a new tensor");
  integers.resize_(size);
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t storage_offset, c10::IntArrayRef size,
                        c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, source, storage_offset, size, stride);
  const size_t needed =
      is_below_byte(self.scalar_type())
          ? static_cast<size_t>(storage_offset) + bytes_of(size, self.scalar_type())
          : at::detail::computeStorageNbytes(size, stride, self.element_size(), static_cast<size_t>(storage_offset));
  TORCH_CHECK(needed <= source.nbytes(), "setStorage: sizes ", size, ", strides ", stride, ", storage offset ",
              storage_offset, ", and itemsize ", self.element_size(), " requiring a storage size of ", needed,
              " are out of bounds for storage of size ", source.nbytes());
  auto& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(storage_offset);
  impl.set_sizes_and_strides(size, stride);
  return self;
}

// Rejects other dtypes. PyTorch's function would return a tensor of the other dtype that still claims to have a
// quantizer, and crashes when it is used.
at::Tensor view_dtype(const at::Tensor& self, c10::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(dtype == self.scalar_type(),
                              "aten::view.dtype: a quantized tensor on an openreg device cannot be viewed as ", dtype,
                              "; take its integers with .int_repr()");
  return self.alias();
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard quantized(c10::DispatchKey::QuantizedPrivateUse1);
  function<op::resize_>(library, resize_);
  function<op::set__source_Storage_storage_offset>(library, set_storage);
  function<op::view_dtype>(library, view_dtype);
  host_composite<kQuantized>(library, {"_reshape_alias", "as_strided", "squeeze", "squeeze.dim", "squeeze.dims",
                                       "unfold", "unsqueeze", "view"});
}

}  // namespace

}  // namespace openreg::ops
