// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "kernels/types.h"

namespace openreg::ops::raw {

// Row i of the output is row indices[i] of the table. Indices and output are contiguous. Throws std::out_of_range for
// an index that the table does not have; then the output holds nothing of use.
struct EmbeddingArguments {
  const void* table;
  std::array<int64_t, 2> table_strides;  // between rows, between columns
  const void* indices;
  Type index_type;  // Int or Long
  void* output;
  int64_t element_size;  // bytes are moved, of any type
  int64_t count;         // indices
  int64_t rows;          // of the table
  int64_t width;
};

// Row r of the table's gradient is the sum, in their order, of the rows of `gradient` whose index is r; divided by how
// many there are where `by_frequency`. The row `padding` gets zero, -1 means none. All operands are contiguous.
struct EmbeddingBackwardArguments {
  Type type;  // one of Floats
  const void* gradient;
  const void* indices;
  Type index_type;
  void* table_gradient;
  int64_t count;
  int64_t rows;
  int64_t width;
  int64_t padding;
  bool by_frequency;
};

void embedding(const EmbeddingArguments& arguments);
void embedding_backward(const EmbeddingBackwardArguments& arguments);

}  // namespace openreg::ops::raw
