// SPDX-License-Identifier: BSD-3-Clause
// Varlen attention by a loop over the sequences, each of which is a batch of one for the kernels of attention.h.
#include "kernels/varlen_attention.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <limits>
#include <vector>

namespace openreg::ops::kernels {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns `starts` as int64. Throws c10::Error if they decrease or exceed the number of rows.
std::vector<int64_t> bounds_of(const at::Tensor& starts, int64_t rows) {
  const at::Tensor wide = starts.to(at::kLong).contiguous();
  const int64_t* values = wide.const_data_ptr<int64_t>();
  std::vector<int64_t> bounds(values, values + wide.numel());
  for (size_t i = 0; i < bounds.size(); ++i) {
    TORCH_CHECK(bounds[i] >= (i == 0 ? 0 : bounds[i - 1]) && bounds[i] <= rows,
                "attention: expected starts of sequences that do not decrease, from 0 to ", rows,
                ", the rows of their tensor, but start ", i, " is ", bounds[i]);
  }
  return bounds;
}

// The rows of one sequence and of its keys.
struct Sequence {
  int64_t begin;
  int64_t length;
  int64_t key_begin;
  int64_t key_length;

  // Return the rows of the sequence as (1, heads, length, width), or an undefined tensor if `tensor` is undefined.
  at::Tensor rows(const at::Tensor& tensor) const { return part(tensor, begin, length); }
  at::Tensor key_rows(const at::Tensor& tensor) const { return part(tensor, key_begin, key_length); }

 private:
  static at::Tensor part(const at::Tensor& tensor, int64_t begin, int64_t length) {
    return tensor.defined() ? tensor.narrow(0, begin, length).transpose(0, 1).unsqueeze(0) : tensor;
  }
};

std::vector<Sequence> sequences_of(const std::vector<int64_t>& bounds, const std::vector<int64_t>& key_bounds,
                                   const VarlenOptions& options) {
  std::vector<Sequence> sequences;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    sequences.push_back({bounds[i], bounds[i + 1] - bounds[i], key_bounds[i], key_bounds[i + 1] - key_bounds[i]});
    const Sequence& last = sequences.back();
    TORCH_CHECK(last.length <= options.longest && last.key_length <= options.longest_key,
                "attention: expected at most ", options.longest, " queries and ", options.longest_key,
                " keys in a sequence (max_seqlen_q and max_seqlen_k), but sequence ", i, " has ", last.length, " and ",
                last.key_length);
  }
  return sequences;
}

// Sets the rows before the first and after the last sequence to zero.
void zero_beyond(const at::Tensor& tensor, const std::vector<int64_t>& bounds) {
  if (tensor.defined()) {
    tensor.narrow(0, 0, bounds.front()).zero_();
    tensor.narrow(0, bounds.back(), tensor.size(0) - bounds.back()).zero_();
  }
}

// Returns the part of logsumexp that belongs to a sequence, (1, heads, length).
at::Tensor sums_of(const at::Tensor& logsumexp, size_t index, const Sequence& sequence) {
  return logsumexp.narrow(0, static_cast<int64_t>(index), 1).narrow(2, 0, sequence.length);
}

}  // namespace

std::optional<at::Tensor> mask_of(Visible visible, int64_t queries, int64_t keys) {
  if (visible != Visible::kUpToRowFromEnd) {
    return std::nullopt;
  }
  return at::ones({queries, keys}, at::kBool).tril_(keys - queries);
}

void varlen_attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const at::Tensor& starts, const at::Tensor& key_starts, VarlenOptions options,
                              runtime::PhiloxState random, at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed,
                              at::Tensor& offset) {
  seed.fill_(static_cast<int64_t>(random.seed()));
  offset.fill_(static_cast<int64_t>(random.offset()));
  if (logsumexp.numel() > 0) {
    logsumexp.fill_(kInfinity);
  }
  const std::vector<int64_t> bounds = bounds_of(starts, query.size(0));
  const std::vector<int64_t> key_bounds = bounds_of(key_starts, key.size(0));
  const std::vector<Sequence> sequences = sequences_of(bounds, key_bounds, options);
  const auto steps = static_cast<uint64_t>(steps_of(options, query.size(1)));
  at::Tensor unused = at::empty({}, at::kLong);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = sequences[i];
    const runtime::PhiloxState own(random.seed(), random.offset() + i * steps);
    at::Tensor result = sequence.rows(output);
    at::Tensor sums = logsumexp.numel() > 0 ? sums_of(logsumexp, i, sequence)
                                            : at::empty({1, query.size(1), sequence.length},
                                                        query.options().dtype(at::toOpMathType(query.scalar_type())));
    attention_forward(sequence.rows(query), sequence.key_rows(key), sequence.key_rows(value),
                      mask_of(options.visible, sequence.length, sequence.key_length), options_of(options), own, result,
                      sums, unused, unused);
  }
  zero_beyond(output, bounds);
}

void varlen_attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& starts, const at::Tensor& key_starts,
                               const at::Tensor& output, const at::Tensor& logsumexp, VarlenOptions options,
                               const at::Tensor& seed, const at::Tensor& offset, at::Tensor& grad_query,
                               at::Tensor& grad_key, at::Tensor& grad_value) {
  const std::vector<int64_t> bounds = bounds_of(starts, query.size(0));
  const std::vector<int64_t> key_bounds = bounds_of(key_starts, key.size(0));
  const std::vector<Sequence> sequences = sequences_of(bounds, key_bounds, options);
  const int64_t first = *offset.const_data_ptr<int64_t>();
  const int64_t steps = steps_of(options, query.size(1));
  at::Tensor none;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = sequences[i];
    const at::Tensor own = at::empty({}, at::kLong).fill_(first + static_cast<int64_t>(i) * steps);
    at::Tensor of_query = sequence.rows(grad_query);
    at::Tensor of_key = sequence.key_rows(grad_key);
    at::Tensor of_value = sequence.key_rows(grad_value);
    attention_backward(sequence.rows(grad), sequence.rows(query), sequence.key_rows(key), sequence.key_rows(value),
                       mask_of(options.visible, sequence.length, sequence.key_length), sequence.rows(output),
                       sums_of(logsumexp, i, sequence), options_of(options), seed, own, of_query, of_key, of_value,
                       none);
  }
  zero_beyond(grad_query, bounds);
  zero_beyond(grad_key, key_bounds);
  zero_beyond(grad_value, key_bounds);
}

}  // namespace openreg::ops::kernels
