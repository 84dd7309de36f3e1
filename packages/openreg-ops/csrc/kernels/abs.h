// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// output = |input|, element by element. A complex output holds the magnitude as its real part. Both operands have
// `type` and may be the same memory.
struct AbsArguments {
  Type type;
  const void* input;
  void* output;
  Axes<2> axes;  // strides of the input, of the output
};

bool abs_serves(Type type);
void abs(const AbsArguments& arguments);

}  // namespace openreg::ops::raw
