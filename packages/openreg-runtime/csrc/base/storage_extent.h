// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a storage that the elements of a tensor reach.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace openreg::runtime {

// Returns the number of elements in one byte for dtypes that are smaller than a byte, else 1.
inline size_t elements_per_byte(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::QUInt4x2:
      return 2;
    case c10::ScalarType::QUInt2x4:
      return 4;
    default:
      return 1;
  }
}

// Returns the number of bytes from the element with the lowest address to the end of that with the highest one, if the
// first has the index `first` in its storage. The tensor has at least one element, and its strides are not negative.
inline size_t bytes_to_last_element(const at::Tensor& tensor, int64_t first) {
  int64_t last = first;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return (static_cast<size_t>(last) / elements_per_byte(tensor.scalar_type()) + 1) * tensor.element_size();
}

}  // namespace openreg::runtime
