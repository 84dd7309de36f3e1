// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/alias.h"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

#include "base/storage_extent.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/launch.h"

namespace openreg::runtime {

void check_storage(const char* operation, const at::Tensor& tensor) {
  if (tensor.numel() == 0) {
    return;
  }
  const size_t nbytes = tensor.storage().nbytes();
  TORCH_CHECK(bytes_to_last_element(tensor, tensor.storage_offset()) <= nbytes, operation, ": a tensor of shape ",
              tensor.sizes(), ", strides ", tensor.strides(), ", offset ", tensor.storage_offset(), " and dtype ",
              tensor.dtype(), " on ", tensor.device(), " reaches beyond its storage, which has ", nbytes, " bytes",
              nbytes == 0 ? ": its memory was freed" : "",
              ". Give the storage its size back with .untyped_storage().resize_(), or make the tensor anew");
}

at::Tensor AliasBuilder::operator()(const at::Tensor& tensor) {
  return describe(tensor).make_tensor(storages_);
}

AliasDescriptor AliasBuilder::describe(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return {};
  }
  const c10::Device device = tensor.device();
  if (C10_LIKELY(device.type() == kDeviceType && tensor.layout() == c10::kStrided)) {
    const void* address = tensor.storage().data();
    return describe_at(tensor, address == nullptr ? nullptr : kernel_view(address));
  }
  TORCH_CHECK(device.type() != kDeviceType, operation_, ": the openreg device has no kernels for layout ",
              tensor.layout(), " (tensor on ", device, "); convert it with .to_dense()");
  TORCH_CHECK(device.is_cpu() && tensor.dim() == 0, operation_,
              ": expected a tensor on an openreg device but got one on ", device, "; move it with .to('openreg')");
  AliasDescriptor result;
  result.kind_ = AliasDescriptor::Kind::kNumber;
  result.set_bits(*tensor.unsafeGetTensorImpl());
  std::memcpy(result.few_.data(), tensor.const_data_ptr(), tensor.element_size());
  return result;
}

at::Tensor AliasBuilder::borrow_host(const at::Tensor& tensor) {
  return describe_at(tensor, const_cast<void*>(tensor.storage().data())).make_tensor(storages_);
}

AliasDescriptor AliasBuilder::describe_at(const at::Tensor& tensor, void* address) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const c10::Storage& storage = impl.unsafe_storage();
  const c10::IntArrayRef sizes = impl.sizes();
  const c10::IntArrayRef strides = impl.strides();
  AliasDescriptor result;
  result.kind_ = AliasDescriptor::Kind::kAlias;
  result.set_bits(impl);
  result.storage_ = number_of(storage.unsafeGetStorageImpl());
  result.address_ = address;
  result.nbytes_ = storage.nbytes();
  result.storage_offset_ = impl.storage_offset();
  result.dims_ = sizes.size();
  if (C10_UNLIKELY(sizes.size() > AliasDescriptor::kInlineDims)) {
    result.many_ = std::make_unique<int64_t[]>(2 * sizes.size());
  }
  int64_t* geometry = result.geometry();
  int64_t last = result.storage_offset_;  // the element of the highest address
  for (size_t i = 0; i < sizes.size(); ++i) {
    geometry[i] = sizes[i];
    geometry[i + sizes.size()] = strides[i];
    last += (sizes[i] - 1) * strides[i];
  }
  if (C10_UNLIKELY(static_cast<size_t>(last + 1) * result.dtype_.itemsize() > result.nbytes_)) {
    check_storage(operation_, tensor);  // also handles tensors without elements and dtypes smaller than a byte
  }
  if (C10_UNLIKELY(operands_.has_value())) {
    operands_->add(tensor, access_);
  }
  return result;
}

}  // namespace openreg::runtime
