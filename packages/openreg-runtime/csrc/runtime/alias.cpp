// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/alias.h"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstring>

#include "openreg/runtime/device.h"
#include "openreg/runtime/launch.h"

namespace openreg::runtime {

at::Tensor Aliases::operator()(const at::Tensor& tensor) {
  return record(tensor).open(storages_);
}

AliasRecord Aliases::record(const at::Tensor& tensor) {
  AliasRecord result;
  if (!tensor.defined()) {
    return result;
  }
  const c10::Device device = tensor.device();
  if (device.is_cpu() && tensor.dim() == 0) {
    result.kind_ = AliasRecord::Kind::kNumber;
    result.dtype_ = tensor.dtype();
    std::memcpy(result.number_.data(), tensor.const_data_ptr(), tensor.element_size());
    result.set_lazy_bits(tensor);
    return result;
  }
  TORCH_CHECK(device.type() == kDeviceType, operation_, ": expected a tensor on an openreg device but got one on ",
              device, "; move it with .to('openreg')");
  TORCH_CHECK(tensor.layout() == c10::kStrided, operation_, ": the openreg device has no kernels for layout ",
              tensor.layout(), " (tensor on ", device, "); convert it with .to_dense()");
  const void* address = tensor.storage().data();
  return describe(tensor, address == nullptr ? nullptr : kernel_view(address));
}

at::Tensor Aliases::borrow_host(const at::Tensor& tensor) {
  return describe(tensor, const_cast<void*>(tensor.storage().data())).open(storages_);
}

AliasRecord Aliases::describe(const at::Tensor& tensor, void* address) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  AliasRecord result;
  result.kind_ = AliasRecord::Kind::kAlias;
  result.dtype_ = impl->dtype();
  result.storage_ = number_of(tensor.storage().unsafeGetStorageImpl());
  result.address_ = address;
  result.nbytes_ = tensor.storage().nbytes();
  result.storage_offset_ = impl->storage_offset();
  result.geometry_.set_sizes(impl->sizes());
  result.geometry_.set_strides(impl->strides());
  result.set_lazy_bits(tensor);
  if (C10_UNLIKELY(wanted_)) {
    operands_.add(tensor, access_);
  }
  return result;
}

uint32_t Aliases::number_of(const c10::StorageImpl* storage) {
  const auto found = std::find(known_.begin(), known_.end(), storage);
  const auto number = static_cast<uint32_t>(found - known_.begin());
  if (found == known_.end()) {
    known_.push_back(storage);
  }
  return number;
}

}  // namespace openreg::runtime
