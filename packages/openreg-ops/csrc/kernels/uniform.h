// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// Fills the output with numbers uniform in [from, to). Which number an element gets depends on its index, the seed and
// the offset alone: counter offset + i gives the elements 4i to 4i+3, of a double 2i and 2i+1.
struct UniformArguments {
  Type type;  // one of Floats
  void* output;
  Axes<1> axes;  // in the order of the elements' indices
  double from;
  double to;
};

void uniform(const UniformArguments& arguments, uint64_t seed, uint64_t offset);

}  // namespace openreg::ops::raw
