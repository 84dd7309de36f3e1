// SPDX-License-Identifier: BSD-3-Clause
#include "transport/host_memory.h"

#include <ATen/ops/from_blob.h>

#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::distributed {

namespace {

void* address_of(const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
  runtime::check_storage("a collective", tensor);
  const void* address = tensor.const_data_ptr();
  return address == nullptr ? nullptr : runtime::kernel_view(address);
}

}  // namespace

at::Tensor host_view(const at::Tensor& tensor) {
  return at::from_blob(address_of(tensor), tensor.sizes(), at::TensorOptions(tensor.scalar_type()));
}

at::Tensor host_bytes(const at::Tensor& tensor) {
  return at::from_blob(address_of(tensor), {static_cast<int64_t>(tensor.nbytes())}, at::TensorOptions(c10::kByte));
}

}  // namespace openreg::distributed
