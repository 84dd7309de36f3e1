// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "kernels/types.h"

namespace openreg::ops::raw {

// One parameter: dense, its gradient and momentum laid out alike.
struct SgdParameter {
  void* parameter;
  void* gradient;
  void* momentum;  // null where there is none
  int64_t count;
};

// One step of stochastic gradient descent for a group of parameters, as torch.optim.SGD describes it. Scales and flags
// that are computed on the device come as addresses of one float32, or null.
struct SgdArguments {
  Type type{};  // of all tensors; one of Floats
  std::vector<SgdParameter> parameters{};
  double learning_rate = 0;
  const float* learning_rate_address = nullptr;  // counts instead of the number where not null
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool first_step = false;           // the momentum starts as the gradient
  const float* scale = nullptr;      // gradients are divided by it, where they are
  const float* found_inf = nullptr;  // 1 means: leave everything as it is
};

void sgd(const SgdArguments& arguments);

}  // namespace openreg::ops::raw
