// SPDX-License-Identifier: BSD-3-Clause
// The kernels of aten::embedding and of its gradient. Like all kernels in namespace raw, they take addresses, sizes and
// strides instead of tensors. The compute engine of the device runs them, on all OpenMP threads.
#pragma once

#include <array>

#include "kernels/types.h"

namespace openreg::ops::raw {

// Arguments of embedding(), which copies row indices[i] of the table to row i of the output. Indices and output are
// contiguous. Throws std::out_of_range, which becomes the device's sticky error, if an index is negative or not below
// `rows`. The content of the output is undefined then.
struct EmbeddingArguments {
  const void* table;
  std::array<int64_t, 2> table_strides;  // between rows, between columns
  const void* indices;
  Type index_type;  // Int or Long
  void* output;
  int64_t element_size;  // in bytes; the kernel copies bytes, so it supports every dtype
  int64_t count;         // number of indices
  int64_t rows;          // number of rows of the table
  int64_t width;         // number of columns
};

// Arguments of embedding_backward(), which sets row r of the table's gradient to the sum of the rows of `gradient`
// whose index is r, added in order. If `by_frequency`, each sum is divided by the number of its rows. The row `padding`
// becomes zero; -1 means that there is no such row. All operands are contiguous. Throws std::out_of_range as
// embedding() does.
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
