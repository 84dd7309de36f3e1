// SPDX-License-Identifier: BSD-3-Clause
// When a recurrent network may run by whole layers or as a whole: what the kernels of LSTM, GRU and RNN have in common.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::ops {

// How a network is made. A cell has 4 gates in an LSTM, 3 in a GRU and 1 in an RNN.
struct RnnShape {
  int64_t gates;
  int64_t layers;
  int64_t directions;
  bool has_biases;
};

// The parameters of one layer and direction: two matrices, then two biases where there are any.
at::TensorList parameters_of(at::TensorList params, int64_t index, bool has_biases);

// Whether input (steps or batch first, three dimensions), states (layers and directions, batch, hidden) and parameters
// have one device and dtype and fit each other. What does not goes the composite way, which finds the mistake or knows
// the case: projections, for one. The sizes of the batch are not compared.
bool are_usual(const at::Tensor& input, at::TensorList states, at::TensorList params, const RnnShape& shape);

// Whether neither autocast nor a transformation of functions is at work, which know the operators that the composite
// form is made of.
bool are_plain(const at::Tensor& input, at::TensorList states, at::TensorList params);

}  // namespace openreg::ops
