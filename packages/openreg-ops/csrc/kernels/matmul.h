// SPDX-License-Identifier: BSD-3-Clause
// A kernel of aten::mm for real dtypes, which replaces PyTorch's only with OPENREG_KERNELS=raw. Like all kernels in
// namespace raw, it takes addresses, sizes and strides instead of tensors. The compute engine of the device runs it, on
// all OpenMP threads.
#pragma once

#include <array>

#include "kernels/types.h"

namespace openreg::ops::raw {

// A matrix: the address of its first element, and the distances between rows and between columns, in elements.
struct Matrix {
  void* address;
  std::array<int64_t, 2> strides;
};

// Arguments of matmul(), which computes output (rows x columns) = left (rows x depth) times right (depth x columns).
// All have `type`. The output must not overlap an operand. Products are summed in the Accumulator of the type, in an
// order that depends only on the shapes.
struct MatmulArguments {
  Type type;  // one of FloatsAndIntegers
  Matrix left;
  Matrix right;
  Matrix output;
  int64_t rows;
  int64_t columns;
  int64_t depth;
};

void matmul(const MatmulArguments& arguments);

}  // namespace openreg::ops::raw
