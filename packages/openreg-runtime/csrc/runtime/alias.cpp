// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/alias.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

#include "openreg/runtime/device.h"
#include "openreg/runtime/launch.h"

namespace openreg::runtime {

namespace {

void copy_lazy_bits(const at::Tensor& from, const at::Tensor& to) {
  auto* impl = to.unsafeGetTensorImpl();
  if (from.is_conj()) {
    impl->_set_conj(true);
  }
  if (from.is_neg()) {
    impl->_set_neg(true);
  }
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
}

at::Tensor copy_host_scalar(const at::Tensor& scalar) {
  at::Tensor copy = at::detail::empty_cpu({}, scalar.scalar_type());
  std::memcpy(copy.mutable_data_ptr(), scalar.const_data_ptr(), scalar.element_size());
  copy_lazy_bits(scalar, copy);
  return copy;
}

}  // namespace

at::Tensor Aliases::operator()(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return {};
  }
  if (tensor.device().is_cpu() && tensor.dim() == 0) {
    return copy_host_scalar(tensor);
  }
  TORCH_CHECK(tensor.device().type() == kDeviceType, operation_,
              ": expected a tensor on an openreg device but got one on ", tensor.device(),
              "; move it with .to('openreg')");
  TORCH_CHECK(tensor.layout() == c10::kStrided, operation_, ": the openreg device has no kernels for layout ",
              tensor.layout(), " (tensor on ", tensor.device(), "); convert it with .to_dense()");
  const void* address = tensor.storage().data();
  return alias(tensor, address == nullptr ? nullptr : kernel_view(address));
}

at::Tensor Aliases::borrow_host(const at::Tensor& tensor) {
  return alias(tensor, const_cast<void*>(tensor.storage().data()));
}

at::Tensor Aliases::alias(const at::Tensor& tensor, void* address) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      storage_alias(tensor, address), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  copy_lazy_bits(tensor, result);
  return result;
}

c10::Storage Aliases::storage_alias(const at::Tensor& tensor, void* address) {
  const c10::StorageImpl* original = tensor.storage().unsafeGetStorageImpl();
  for (const auto& [known, alias] : storages_) {
    if (known == original) {
      return alias;
    }
  }
  c10::Storage alias(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), original->nbytes(),
                                                           c10::DataPtr(address, c10::Device(c10::DeviceType::CPU)),
                                                           nullptr, false));
  storages_.emplace_back(original, alias);
  return alias;
}

}  // namespace openreg::runtime
