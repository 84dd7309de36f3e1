// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

// Along one axis: output = exp(input) / sum(exp(input)), computed from the distance to the largest element.
struct SoftmaxArguments {
  Type type;  // one of Floats
  const void* input;
  void* output;
  Axes<2> lines;  // the other axes: strides of the input, of the output
  Axis<2> along;  // the axis itself
};

// input_gradient = output * (gradient - sum(gradient * output)).
struct SoftmaxBackwardArguments {
  Type type;  // one of Floats
  const void* gradient;
  const void* output;
  void* input_gradient;
  Axes<3> lines;  // strides of the gradient, of the output, of the input's gradient
  Axis<3> along;
};

void softmax(const SoftmaxArguments& arguments);
void softmax_backward(const SoftmaxBackwardArguments& arguments);

}  // namespace openreg::ops::raw
