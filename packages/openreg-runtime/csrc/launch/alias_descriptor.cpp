// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/alias_descriptor.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "launch/alias_pool.h"

namespace openreg::runtime {

namespace {

// Makes a storage that cannot be resized, because kernels must not resize operands.
c10::Storage make_storage(c10::DataPtr bytes, size_t nbytes) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), nbytes, std::move(bytes), nullptr,
                                               false);
}

// Allocates zeros, aligned to 64 bytes like memory of the CPU's allocator, as vectorized kernels expect. The system
// maps a page of a large block only when it is written. A stand-in of a large storage therefore costs only the pages
// that the kernel writes. Throws std::bad_alloc.
c10::DataPtr make_zeros(size_t nbytes) {
  constexpr uintptr_t kAlignment = 64;
  void* const block = std::calloc(nbytes + kAlignment, 1);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  const auto address = (reinterpret_cast<uintptr_t>(block) + kAlignment - 1) & ~(kAlignment - 1);
  return {reinterpret_cast<void*>(address), block, &std::free, c10::Device(c10::DeviceType::CPU)};
}

}  // namespace

c10::DataPtr AliasStorages::bytes_of(void* address, size_t nbytes) const {
  return bytes_ == Bytes::kStandIn ? make_zeros(nbytes) : c10::DataPtr(address, c10::Device(c10::DeviceType::CPU));
}

at::Tensor AliasStorages::make_tensor(uint32_t number, void* address, size_t nbytes, caffe2::TypeMeta dtype) {
  if (storages_.size() <= number) {
    storages_.resize(number + 1);
  }
  c10::Storage& storage = storages_[number];
  AliasPool* const pool = bytes_ == Bytes::kOfTensor ? AliasPool::of_thread() : nullptr;
  at::Tensor tensor = pool == nullptr ? at::Tensor() : pool->take();
  if (!tensor.defined()) {
    if (!storage) {
      storage = make_storage(bytes_of(address, nbytes), nbytes);
    }
    return at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                    dtype);
  }
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!storage) {
    storage = impl.storage();
    storage.set_data_ptr_noswap(bytes_of(address, nbytes));
    storage.set_nbytes(nbytes);
  } else {
    impl.set_storage_keep_dtype(storage);
  }
  if (impl.dtype() != dtype) {
    impl.set_storage_and_dtype(storage, dtype);
  }
  return tensor;
}

void AliasDescriptor::recycle() noexcept {
  if (AliasPool* const pool = AliasPool::of_thread()) {
    pool->give(std::move(alias_));
  }
}

at::Tensor& AliasDescriptor::make_tensor(AliasStorages& storages) {
  if (kind_ == Kind::kUndefined || alias_.defined()) {
    return alias_;
  }
  if (kind_ == Kind::kNumber) {
    alias_ = at::detail::empty_cpu({}, c10::typeMetaToScalarType(dtype_));
    std::memcpy(alias_.mutable_data_ptr(), few_.data(), dtype_.itemsize());
  } else {
    alias_ = storages.make_tensor(storage_, address_, nbytes_, dtype_);
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
