// SPDX-License-Identifier: BSD-3-Clause
// Walking strided operands: the axes that several operands share, the fastest first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace openreg::ops::raw {

// One axis: its size, and for each operand the step between neighbors, in elements.
template <size_t kOperands>
struct Axis {
  int64_t size;
  std::array<int64_t, kOperands> strides;
};

template <size_t kOperands>
using Axes = std::vector<Axis<kOperands>>;

template <size_t kOperands>
int64_t element_count(const Axes<kOperands>& axes) {
  int64_t count = 1;
  for (const Axis<kOperands>& axis : axes) {
    count *= axis.size;
  }
  return count;
}

// Where in each operand the element number `index` is.
template <size_t kOperands>
std::array<int64_t, kOperands> offsets_at(const Axes<kOperands>& axes, int64_t index) {
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

// Calls `body(offsets, length)` for the pieces of rows (the first axis) that make up the elements [begin, end). A row's
// elements are axes[0].strides apart; without axes there is one element.
template <size_t kOperands, class Body>
void for_each_row(const Axes<kOperands>& axes, int64_t begin, int64_t end, Body&& body) {
  const int64_t row_length = axes.empty() ? 1 : axes[0].size;
  while (begin < end) {
    const int64_t column = begin % row_length;
    const int64_t length = std::min(row_length - column, end - begin);
    body(offsets_at(axes, begin), length);
    begin += length;
  }
}

// The steps along the first axis.
template <size_t kOperands>
std::array<int64_t, kOperands> row_strides(const Axes<kOperands>& axes) {
  return axes.empty() ? std::array<int64_t, kOperands>{} : axes[0].strides;
}

}  // namespace openreg::ops::raw
