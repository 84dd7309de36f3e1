// SPDX-License-Identifier: BSD-3-Clause
// The kernels of scaled dot-product attention. They take aliases, which are CPU tensors over the bytes of device
// tensors. The compute engine of the device runs them, on all OpenMP threads, and a dry run (launch/dry_run.h) runs
// them on the calling thread alone.
//
// Shapes are query (batch, heads, queries, width), key (batch, key heads, keys, width) and value (batch, key heads,
// keys, value width), or all without the batch. The number of heads is a multiple of the number of key heads, and
// neighboring heads share a key head (grouped-query attention). Operands have one floating-point dtype. The mask has
// that dtype, or is float or bool. A bool mask is true for the keys that a query may see, and any other mask is added
// to the scores. It broadcasts to (batch, heads, queries, keys). Outputs may have any strides.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

struct AttentionOptions {
  double dropout_p;
  bool is_causal;               // true: query i sees only the keys 0 to i
  std::optional<double> scale;  // factor of the scores; 1 / sqrt(width) if it has no value
};

// Computes the output. Writes the logarithm of the sum of each row's exponentials to `logsumexp` (batch, heads,
// queries). Writes the place of `random` in the Philox sequence to `seed` and `offset` (0-dim, int64), so that the
// backward kernel draws the same numbers for dropout.
void attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const std::optional<at::Tensor>& mask, AttentionOptions options, runtime::PhiloxState random,
                       at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed, at::Tensor& offset);

// Computes the gradients that are defined; undefined ones are not required. `output`, `logsumexp`, `seed` and `offset`
// are those of attention_forward().
void attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const std::optional<at::Tensor>& mask, const at::Tensor& output, const at::Tensor& logsumexp,
                        AttentionOptions options, const at::Tensor& seed, const at::Tensor& offset,
                        at::Tensor& grad_query, at::Tensor& grad_key, at::Tensor& grad_value, at::Tensor& grad_mask);

}  // namespace openreg::ops::kernels
