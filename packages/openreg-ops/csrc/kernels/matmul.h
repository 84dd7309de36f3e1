// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "kernels/types.h"

namespace openreg::ops::raw {

// A matrix: address of its first element, and the steps between rows and between columns, in elements.
struct Matrix {
  void* address;
  std::array<int64_t, 2> strides;
};

// output (rows x columns) = left (rows x depth) times right (depth x columns), all of `type`. The output overlaps
// neither operand. Products are summed in the accumulator of the type, in an order that depends on the shapes alone.
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
