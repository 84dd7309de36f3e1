// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/alias_record.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

namespace openreg::runtime {

namespace {

c10::Storage make_storage(void* address, size_t nbytes) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), nbytes,
                                               c10::DataPtr(address, c10::Device(c10::DeviceType::CPU)), nullptr,
                                               false);
}

}  // namespace

at::Tensor& AliasRecord::open(AliasStorages& storages) {
  if (kind_ == Kind::kUndefined || alias_.defined()) {
    return alias_;
  }
  if (kind_ == Kind::kNumber) {
    alias_ = at::detail::empty_cpu({}, c10::typeMetaToScalarType(dtype_));
    std::memcpy(alias_.mutable_data_ptr(), few_.data(), dtype_.itemsize());
  } else {
    if (storages.size() <= storage_) {
      storages.resize(storage_ + 1);
    }
    c10::Storage& storage = storages[storage_];
    if (!storage) {
      storage = make_storage(address_, nbytes_);
    }
    alias_ = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                      dtype_);
    alias_.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef(geometry(), dims_),
                                                        c10::IntArrayRef(geometry() + dims_, dims_), storage_offset_);
  }
  c10::TensorImpl* impl = alias_.unsafeGetTensorImpl();
  if (is_conj_) {
    impl->_set_conj(true);
  }
  if (is_neg_) {
    impl->_set_neg(true);
  }
  if (is_wrapped_number_) {
    impl->set_wrapped_number(true);
  }
  return alias_;
}

}  // namespace openreg::runtime
