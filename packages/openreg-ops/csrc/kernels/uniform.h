// SPDX-License-Identifier: BSD-3-Clause
// The kernel of aten::uniform_. Like all kernels in namespace raw, it takes addresses, sizes and strides instead of
// tensors. The compute engine of the device runs it, on all OpenMP threads.
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// Arguments of uniform(), which fills the output with numbers that are uniform in [from, to).
struct UniformArguments {
  Type type;  // one of Floats
  void* output;
  LoopAxes<1> axes;  // in the order in which elements are numbered, the last dimension of the tensor first
  double from;
  double to;
};

// `seed` and `offset` are the place in the Philox sequence at which the kernel begins to draw. Step offset + i gives
// the elements 4i to 4i + 3, so the numbers do not depend on the threads.
void uniform(const UniformArguments& arguments, uint64_t seed, uint64_t offset);

}  // namespace openreg::ops::raw
