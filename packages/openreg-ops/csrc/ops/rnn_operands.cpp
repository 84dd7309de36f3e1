// SPDX-License-Identifier: BSD-3-Clause
#include "ops/rnn_operands.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>

#include <algorithm>

namespace openreg::ops {

at::TensorList parameters_of(at::TensorList params, int64_t index, bool has_biases) {
  const size_t count = has_biases ? 4 : 2;
  return params.slice(static_cast<size_t>(index) * count, count);
}

bool are_usual(const at::Tensor& input, at::TensorList states, at::TensorList params, const RnnShape& shape) {
  const auto alike = [&](const at::Tensor& tensor) {
    return tensor.device() == input.device() && tensor.scalar_type() == input.scalar_type();
  };
  const int64_t count = shape.layers * shape.directions;
  if (input.dim() != 3 || input.numel() == 0 || states.empty() || states[0].dim() != 3 || states[0].size(0) != count ||
      params.size() != static_cast<size_t>(count * (shape.has_biases ? 4 : 2)) ||
      !std::all_of(states.begin(), states.end(), alike) || !std::all_of(params.begin(), params.end(), alike)) {
    return false;
  }
  const auto same_size = [&](const at::Tensor& state) { return state.sizes() == states[0].sizes(); };
  if (!std::all_of(states.begin(), states.end(), same_size)) {
    return false;
  }
  const int64_t hidden = states[0].size(2);
  const int64_t rows = shape.gates * hidden;
  for (int64_t index = 0; index < count; ++index) {
    const at::TensorList own = parameters_of(params, index, shape.has_biases);
    const int64_t width = index < shape.directions ? input.size(2) : hidden * shape.directions;
    const auto is_bias = [&](const at::Tensor& bias) { return bias.sizes() == c10::IntArrayRef{rows}; };
    if (own[0].sizes() != c10::IntArrayRef{rows, width} || own[1].sizes() != c10::IntArrayRef{rows, hidden} ||
        !std::all_of(own.begin() + 2, own.end(), is_bias)) {
      return false;
    }
  }
  return hidden > 0;
}

bool are_plain(const at::Tensor& input, at::TensorList states, at::TensorList params) {
  const auto is_plain = [](const at::Tensor& tensor) {
    return (tensor.key_set() & at::kTensorSubclassLike).empty() && !tensor._fw_grad(0).defined();
  };
  return !at::autocast::is_autocast_enabled(at::kPrivateUse1) && is_plain(input) &&
         std::all_of(states.begin(), states.end(), is_plain) && std::all_of(params.begin(), params.end(), is_plain);
}

}  // namespace openreg::ops
