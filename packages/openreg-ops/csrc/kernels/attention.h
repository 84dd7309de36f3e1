// SPDX-License-Identifier: BSD-3-Clause
// The kernels of scaled dot-product attention: what runs on the engine, on CPU tensors.
//
// Shapes: query (batch, heads, queries, width), key (batch, key heads, keys, width), value (batch, key heads, keys,
// value width), or all without the batch. The number of heads is a multiple of the number of key heads; neighboring
// heads share one. The mask is added to the scores and broadcast to (batch, heads, queries, keys). Results are written
// into the given tensors, which may have any strides; undefined ones are left out. Operands are of one floating dtype,
// the mask is bool, float or of theirs. All threads work.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

struct AttentionOptions {
  double dropout_p;
  bool is_causal;               // query i sees the keys up to i
  std::optional<double> scale;  // of the scores; 1 / sqrt(width) if not given
};

// `logsumexp` (batch, heads, queries) gets the logarithm of each row's sum, `seed` and `offset` where the random
// numbers of dropout start: backward draws the same ones from there.
void attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const std::optional<at::Tensor>& mask, AttentionOptions options, runtime::PhiloxState random,
                       at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed, at::Tensor& offset);

void attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, const at::Tensor& output, const at::Tensor& logsumexp,
                        AttentionOptions options, const at::Tensor& seed, const at::Tensor& offset,
                        at::Tensor& grad_query, at::Tensor& grad_key, at::Tensor& grad_value, at::Tensor& grad_mask);

}  // namespace openreg::ops::kernels
