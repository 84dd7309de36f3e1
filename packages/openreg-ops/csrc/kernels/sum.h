// SPDX-License-Identifier: BSD-3-Clause
// A kernel of aten::sum for real dtypes, which replaces PyTorch's only with OPENREG_KERNELS=raw. Like all kernels in
// namespace raw, it takes addresses, sizes and strides instead of tensors. The compute engine of the device runs it, on
// all OpenMP threads.
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// Arguments of sum(), which sums the input over some axes, in the Accumulator of the input's type. The summation is
// pairwise, so that the rounding error grows with the logarithm of the number of terms. The order of the additions
// depends only on shapes and strides.
struct SumArguments {
  Type input_type;
  Type output_type;
  const void* input;
  void* output;
  LoopAxes<2> kept;     // axes that remain; strides of the input, of the output
  LoopAxes<1> reduced;  // axes over which the kernel sums; strides of the input
};

// Returns true if sum() supports these types: a floating-point input and an output of its type, a half or bfloat16
// input and a float output, or an integer or bool input and an int64 output.
bool sum_supports(Type input_type, Type output_type);

void sum(const SumArguments& arguments);

}  // namespace openreg::ops::raw
