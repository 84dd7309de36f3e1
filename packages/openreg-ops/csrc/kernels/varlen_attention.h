// SPDX-License-Identifier: BSD-3-Clause
// The kernels of attention over sequences of different lengths, whose rows are consecutive in one tensor (varlen
// attention). They take aliases, which are CPU tensors over the bytes of device tensors. The compute engine of the
// device runs them, on all OpenMP threads, and a dry run (launch/dry_run.h) runs them on the calling thread alone.
//
// Shapes are query (rows, heads, width), key (key rows, heads, width) and value (key rows, heads, value width).
// `starts` contains the first row of each sequence, and then the end of the last one; `key_starts` contains those of
// the keys. Both are int32 or int64. Outputs may have any strides. Rows outside of all sequences become zero.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/attention.h"
#include "support/random_steps.h"

namespace openreg::ops::kernels {

// The keys of its sequence that a query may see. The numbers are those of PyTorch's memory-efficient attention.
enum class Visible : int64_t {
  kAll = 0,
  kUpToRow = 1,         // query i sees the keys 0 to i
  kUpToRowFromEnd = 2,  // as kUpToRow, but counted from the ends of both, so that the last query sees all keys
};

struct VarlenOptions {
  double dropout_p;
  Visible visible;
  std::optional<double> scale;  // factor of the scores; 1 / sqrt(width) if it has no value
  int64_t longest;              // the largest number of queries in a sequence
  int64_t longest_key;          // the largest number of keys in a sequence
};

// Returns an upper bound of the steps of the random number generator (support/random_steps.h) that dropout uses for one
// sequence.
inline int64_t steps_of(const VarlenOptions& options, int64_t heads) {
  return steps_for(heads * options.longest * options.longest_key);
}

// Returns the options with which the kernels of attention.h compute each sequence, together with mask_of().
inline AttentionOptions options_of(const VarlenOptions& options) {
  return {options.dropout_p, options.visible == Visible::kUpToRow, options.scale};
}

// Returns the boolean mask for a sequence with these numbers of queries and keys. Returns no mask unless `visible` is
// kUpToRowFromEnd, because options_of() expresses the other values.
std::optional<at::Tensor> mask_of(Visible visible, int64_t queries, int64_t keys);

// Computes the output. Writes the logarithm of the sum of each row's exponentials to `logsumexp` (sequences, heads,
// longest or more), and infinity beyond the end of a sequence. `logsumexp` is not written if it has no elements. Writes
// the place of `random` in the Philox sequence to `seed` and `offset`, for the backward kernel. Throws c10::Error if
// `starts` or `key_starts` decrease or exceed the rows, or a sequence is longer than the options state.
void varlen_attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const at::Tensor& starts, const at::Tensor& key_starts, VarlenOptions options,
                              runtime::PhiloxState random, at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed,
                              at::Tensor& offset);

// Computes the gradients that are defined; undefined ones are not required. `output`, `logsumexp`, `seed` and `offset`
// are those of varlen_attention_forward(), whose errors it throws.
void varlen_attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& starts, const at::Tensor& key_starts,
                               const at::Tensor& output, const at::Tensor& logsumexp, VarlenOptions options,
                               const at::Tensor& seed, const at::Tensor& offset, at::Tensor& grad_query,
                               at::Tensor& grad_key, at::Tensor& grad_value);

}  // namespace openreg::ops::kernels
