// SPDX-License-Identifier: BSD-3-Clause
// The loops of kernels over strided operands of one shape. A loop nest is a list of axes, the innermost first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::ops::raw {

// One axis of a loop nest: its size, and for each operand the distance between neighboring elements, in elements.
template <size_t kOperands>
struct LoopAxis {
  int64_t size;
  std::array<int64_t, kOperands> strides;
};

// The axes of a loop nest, the innermost first. No axes stand for one element.
template <size_t kOperands>
using LoopAxes = std::vector<LoopAxis<kOperands>>;

// Returns the number of elements of an operand.
template <size_t kOperands>
int64_t element_count(const LoopAxes<kOperands>& axes) {
  int64_t count = 1;
  for (const LoopAxis<kOperands>& axis : axes) {
    count *= axis.size;
  }
  return count;
}

// Returns the offset of the element number `index` in each operand, in elements.
template <size_t kOperands>
std::array<int64_t, kOperands> offsets_at(const LoopAxes<kOperands>& axes, int64_t index) {
  std::array<int64_t, kOperands> offsets{};
  for (size_t i = 0; i < axes.size() && index != 0; ++i) {
    const int64_t coordinate = index % axes[i].size;
    index /= axes[i].size;
    for (size_t k = 0; k < kOperands; ++k) {
      offsets[k] += coordinate * axes[i].strides[k];
    }
  }
  return offsets;
}

// Calls `body(offsets, length)` for each part of a row in the elements [begin, end). A row consists of the elements
// along the first axis, which are axes[0].strides apart. `offsets` are those of the first element of the part.
template <size_t kOperands, class Body>
void for_each_row(const LoopAxes<kOperands>& axes, int64_t begin, int64_t end, Body&& body) {
  const int64_t row_length = axes.empty() ? 1 : axes[0].size;
  while (begin < end) {
    const int64_t column = begin % row_length;
    const int64_t length = std::min(row_length - column, end - begin);
    body(offsets_at(axes, begin), length);
    begin += length;
  }
}

// Returns the strides of the first axis, in elements, or zeros without axes.
template <size_t kOperands>
std::array<int64_t, kOperands> row_strides(const LoopAxes<kOperands>& axes) {
  return axes.empty() ? std::array<int64_t, kOperands>{} : axes[0].strides;
}

}  // namespace openreg::ops::raw
