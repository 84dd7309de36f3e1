// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// output = the sum of the input over some axes. Pairwise, so that the error grows with the logarithm of the count; the
// order of the additions depends on shapes and strides alone. Sums are held in the accumulator of the input's type.
struct SumArguments {
  Type input_type;
  Type output_type;
  const void* input;
  void* output;
  Axes<2> kept;     // strides of the input, of the output
  Axes<1> reduced;  // strides of the input
};

// Floats to their own type or, from 16 bits, to float32; integers and bool to int64.
bool sum_serves(Type input_type, Type output_type);
void sum(const SumArguments& arguments);

}  // namespace openreg::ops::raw
