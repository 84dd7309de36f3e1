// SPDX-License-Identifier: BSD-3-Clause
// The kernels of scaled dot-product attention. They run on the engine, on CPU tensors, with all threads of ATen.
//
// Shapes: query (batch, heads, queries, width), key (batch, key heads, keys, width), value (batch, key heads, keys,
// value width), or all without the batch. The number of heads is a multiple of the number of key heads. If it is
// greater, each key head serves a group of adjacent heads. The mask is broadcast to (batch, heads, queries, keys). A
// floating-point mask is added to the scores. A bool mask is converted first: true becomes 0, false -infinity. All
// operands but the mask have one floating-point dtype; the mask has that dtype, float or bool. The kernels write into
// the given result tensors, which may have any strides. attention_backward() skips gradients whose tensor is undefined.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

struct AttentionOptions {
  double dropout_p;
  bool is_causal;               // query i attends only to keys 0 to i
  std::optional<double> scale;  // of the scores; 1 / sqrt(width) if not given
};

// Writes the attention to `output`. Writes to `logsumexp` (batch, heads, queries) the logarithm of the sum of the
// exponentials of each row of scores. Writes to `seed` and `offset` the start of the random numbers of dropout, from
// which attention_backward() draws them again.
void attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const std::optional<at::Tensor>& mask, AttentionOptions options, runtime::PhiloxState random,
                       at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed, at::Tensor& offset);

// Writes the gradients, given `output`, `logsumexp`, `seed` and `offset` of attention_forward().
void attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, const at::Tensor& output, const at::Tensor& logsumexp,
                        AttentionOptions options, const at::Tensor& seed, const at::Tensor& offset,
                        at::Tensor& grad_query, at::Tensor& grad_key, at::Tensor& grad_value, at::Tensor& grad_mask);

}  // namespace openreg::ops::kernels
