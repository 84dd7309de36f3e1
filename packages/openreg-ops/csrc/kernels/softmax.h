// SPDX-License-Identifier: BSD-3-Clause
// Kernels of aten::_softmax and of its gradient, which replace PyTorch's only with OPENREG_KERNELS=raw. Like all
// kernels in namespace raw, they take addresses, sizes and strides instead of tensors. The compute engine of the device
// runs them, on all OpenMP threads. A line consists of the elements along the axis over which softmax normalizes.
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// Arguments of softmax(), which computes output = exp(input) / sum(exp(input)) for each line. It subtracts the largest
// element of the line first, so that the exponentials do not overflow.
struct SoftmaxArguments {
  Type type;  // one of Floats
  const void* input;
  void* output;
  LoopAxes<2> lines;  // the other axes; strides of the input, of the output
  LoopAxis<2> along;  // the axis of a line
};

// Arguments of softmax_backward(), which computes input_gradient = output * (gradient - sum(gradient * output)) for
// each line.
struct SoftmaxBackwardArguments {
  Type type;  // one of Floats
  const void* gradient;
  const void* output;
  void* input_gradient;
  LoopAxes<3> lines;  // strides of the gradient, of the output, of the input's gradient
  LoopAxis<3> along;
};

void softmax(const SoftmaxArguments& arguments);
void softmax_backward(const SoftmaxBackwardArguments& arguments);

}  // namespace openreg::ops::raw
