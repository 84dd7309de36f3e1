// SPDX-License-Identifier: BSD-3-Clause
// Attention over sequences of any length that lie one behind the other: what runs on the engine, on CPU tensors.
//
// Shapes: query (rows, heads, width), key (key rows, heads, width), value (key rows, heads, value width). `starts` has
// a number for each sequence, where its rows begin, and one for the end of the last; it is int32 or int64. Results are
// written into the given tensors, which may have any strides; undefined ones are left out. All threads work.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/attention.h"

namespace openreg::ops::kernels {

// Which keys a query may see, as PyTorch numbers it for its memory-efficient attention.
enum class Visible : int64_t {
  kAll = 0,
  kUpToRow = 1,         // query i of a sequence sees its keys up to i
  kUpToRowFromEnd = 2,  // the same counted from the ends: the last query sees all keys
};

struct VarlenOptions {
  double dropout_p;
  Visible visible;
  std::optional<double> scale;  // of the scores; 1 / sqrt(width) if not given
  int64_t longest;              // queries in a sequence, at most
  int64_t longest_key;          // keys in a sequence, at most
};

// The random numbers that dropout may need for one sequence.
inline int64_t steps_of(const VarlenOptions& options, int64_t heads) {
  return heads * options.longest * options.longest_key;
}

// Returns the options with which the kernels for batches compute each sequence, together with mask_of().
inline AttentionOptions options_of(const VarlenOptions& options) {
  return {options.dropout_p, options.visible == Visible::kUpToRow, options.scale};
}

// A mask for so many queries and keys; none where the options of AttentionOptions say the same.
std::optional<at::Tensor> mask_of(Visible visible, int64_t queries, int64_t keys);

// `logsumexp` (sequences, heads, longest or more) gets the logarithm of each row's sum, infinity beyond the sequence;
// `seed` and `offset` where the random numbers of dropout start. Throws c10::Error where `starts` leave the tensors, or
// a sequence is longer than the options say.
void varlen_attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const at::Tensor& starts, const at::Tensor& key_starts, VarlenOptions options,
                              runtime::PhiloxState random, at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed,
                              at::Tensor& offset);

void varlen_attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& starts, const at::Tensor& key_starts,
                               const at::Tensor& output, const at::Tensor& logsumexp, VarlenOptions options,
                               const at::Tensor& seed, const at::Tensor& offset, at::Tensor& grad_query,
                               at::Tensor& grad_key, at::Tensor& grad_value);

}  // namespace openreg::ops::kernels
