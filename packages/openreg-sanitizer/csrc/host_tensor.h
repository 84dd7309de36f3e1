// SPDX-License-Identifier: BSD-3-Clause
// A tensor on the CPU, as the sanitizer stores it: without a reference to the tensor.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <cstddef>

#include "layout.h"

namespace openreg::sanitizer {

// The memory and the layout of a tensor on the CPU.
struct HostTensor {
  const void* begin = nullptr;  // null for a number that an operator returns
  size_t size = 0;              // bytes from the first element to the last
  TensorLayout layout;
};

// Describes a strided tensor on the CPU.
inline HostTensor describe_host_tensor(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(),
          at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size()),
          {tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()}};
}

}  // namespace openreg::sanitizer
