// SPDX-License-Identifier: BSD-3-Clause
// A kernel of aten::_fused_sgd_. It replaces PyTorch's with OPENREG_KERNELS=raw, and for 16-bit floats in the releases
// of PyTorch whose kernel skips elements (operators/optimizer/fused.cpp). Like all kernels in namespace raw, it takes
// addresses instead of tensors. The compute engine of the device runs it, on all OpenMP threads.
#pragma once

#include <vector>

#include "kernels/types.h"

namespace openreg::ops::raw {

// The memory of one parameter. Parameter, gradient and momentum are dense and have one order of elements.
struct SgdParameter {
  void* parameter;
  void* gradient;
  void* momentum;  // null if the optimizer has no momentum
  int64_t count;   // number of elements
};

// Arguments of sgd(), which makes one step of stochastic gradient descent for a group of parameters, as torch.optim.SGD
// defines it. Numbers that are computed on the device are passed as the address of one float32, or null.
struct SgdArguments {
  Type type{};  // dtype of all tensors; one of Floats
  std::vector<SgdParameter> parameters{};
  double learning_rate = 0;
  const float* learning_rate_address = nullptr;  // replaces `learning_rate` if not null
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first_step = false;           // true: the momentum becomes the gradient
  const float* scale = nullptr;      // gradients are divided by it in place
  const float* found_inf = nullptr;  // if it is 1, the step changes nothing
};

void sgd(const SgdArguments& arguments);

}  // namespace openreg::ops::raw
