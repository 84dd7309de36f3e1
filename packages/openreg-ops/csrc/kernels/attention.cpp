// SPDX-License-Identifier: BSD-3-Clause
// Two implementations of attention. PyTorch's flash kernel for the CPU stores no matrix of scores, and is used for the
// operands that it supports. All others use the formula of the paper ("Attention Is All You Need", 3.2.1) over the
// whole matrix of scores.
#include "kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/distributions.h"
#include "support/compute_dtype.h"
#include "support/output_redirect.h"

namespace openreg::ops::kernels {

namespace {

using MaybeTensor = const std::optional<at::Tensor>&;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns an operand in four dimensions, with a batch of one if it has no batch.
at::Tensor batched(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 3 ? tensor.unsqueeze(0) : tensor;
}

// Returns the mask as numbers that are added to the scores, in four dimensions, or an undefined tensor without a mask.
at::Tensor additive_mask(MaybeTensor mask, const at::Tensor& query) {
  if (!mask.has_value() || !mask->defined()) {
    return {};
  }
  at::Tensor bias = *mask;
  if (bias.scalar_type() == at::kBool) {
    bias = at::zeros(mask->sizes(), query.options()).masked_fill_(mask->logical_not(), -kInfinity);
  } else if (bias.scalar_type() != at::kFloat) {
    bias = bias.to(query.scalar_type());
  }
  while (bias.dim() < 4) {
    bias = bias.unsqueeze(0);
  }
  return bias;
}

// The operands in four dimensions, with the mask of additive_mask().
struct AttentionOperands {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  at::Tensor mask;
  AttentionOptions options;

  AttentionOperands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, MaybeTensor bias,
                    AttentionOptions how)
      : query(batched(q)), key(batched(k)), value(batched(v)), mask(additive_mask(bias, q)), options(how) {}

  double scale() const { return options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3)))); }
};

// The flash kernel ---------------------------------------------------------------------------------------------------

// Returns true if the flash kernel is used. The conditions are those of PyTorch for the CPU, so that results are equal.
bool fits_flash(const AttentionOperands& x, int64_t dims) {
  return dims == 4 && x.options.dropout_p == 0 && x.query.size(3) == x.value.size(3) && x.query.numel() > 0 &&
         x.key.numel() > 0;
}

// Returns a tensor whose rows have adjacent elements, because the flash kernel requires that.
at::Tensor dense_rows(const at::Tensor& tensor) {
  return tensor.stride(3) == 1 ? tensor : tensor.contiguous();
}

// The heads of one call of the flash kernel, which requires one key head for each head. If heads share a key head, each
// call processes the heads of one key head, which is expanded with a stride of 0.
struct HeadGroup {
  int64_t first;      // the first head
  int64_t count;      // number of heads
  int64_t first_key;  // the first key head
  int64_t keys;       // number of key heads: `count`, or 1 if the heads share it

  at::Tensor heads(const at::Tensor& tensor) const { return tensor.narrow(1, first, count); }
  at::Tensor heads_if(const at::Tensor& tensor) const { return tensor.defined() ? heads(tensor) : tensor; }
  at::Tensor shared(const at::Tensor& tensor) const { return tensor.narrow(1, first_key, keys); }
  at::Tensor key_heads(const at::Tensor& tensor) const { return shared(tensor).expand({-1, count, -1, -1}); }
  std::optional<at::Tensor> mask(const at::Tensor& tensor) const {
    if (!tensor.defined()) {
      return std::nullopt;
    }
    return tensor.size(1) == 1 ? tensor : heads(tensor);
  }
};

std::vector<HeadGroup> head_groups(const AttentionOperands& x) {
  const int64_t heads = x.query.size(1);
  const int64_t key_heads = x.key.size(1);
  if (heads == key_heads) {
    return {{0, heads, 0, heads}};
  }
  std::vector<HeadGroup> groups;
  const int64_t count = heads / key_heads;
  for (int64_t head = 0; head < key_heads; ++head) {
    groups.push_back({head * count, count, head, 1});
  }
  return groups;
}

// Returns a gradient with its dimensions in the order in which the flash kernel allocates it: it swaps heads and
// queries afterwards.
at::Tensor as_made(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.transpose(1, 2) : tensor;
}

void flash_forward(const AttentionOperands& x, const at::Tensor& output, const at::Tensor& logsumexp) {
  const at::Tensor query = dense_rows(x.query);
  const at::Tensor key = dense_rows(x.key);
  const at::Tensor value = dense_rows(x.value);
  for (const HeadGroup& group : head_groups(x)) {
    OutputRedirectGuard results({group.heads(output), group.heads(logsumexp)});
    const auto [computed, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
        group.heads(query), group.key_heads(key), group.key_heads(value), 0.0, x.options.is_causal, group.mask(x.mask),
        x.options.scale);
    results.put({computed, sums});
  }
}

void flash_backward(const AttentionOperands& x, const at::Tensor& grad, const at::Tensor& output,
                    const at::Tensor& logsumexp, at::Tensor& grad_query, at::Tensor& grad_key, at::Tensor& grad_value) {
  const at::Tensor query = dense_rows(x.query);
  const at::Tensor key = dense_rows(x.key);
  const at::Tensor value = dense_rows(x.value);
  const at::Tensor dense_grad = dense_rows(grad);
  const at::Tensor dense_output = dense_rows(output);
  for (const HeadGroup& group : head_groups(x)) {
    const bool sums_heads = group.keys < group.count;
    const at::Tensor none;
    OutputRedirectGuard results({as_made(group.heads_if(grad_query)),
                                 sums_heads ? none : as_made(group.heads_if(grad_key)),
                                 sums_heads ? none : as_made(group.heads_if(grad_value))});
    const auto [of_query, of_key, of_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        group.heads(dense_grad), group.heads(query), group.key_heads(key), group.key_heads(value),
        group.heads(dense_output), group.heads(logsumexp), 0.0, x.options.is_causal, group.mask(x.mask),
        x.options.scale);
    results.put({as_made(of_query), as_made(of_key), as_made(of_value)});
    const auto give = [&](const at::Tensor& wanted, const at::Tensor& of_heads) {
      if (wanted.defined() && sums_heads) {
        group.shared(wanted).copy_(of_heads.sum(1, /*keepdim=*/true));
      }
    };
    give(grad_key, of_key);
    give(grad_value, of_value);
  }
}

// The formula --------------------------------------------------------------------------------------------------------

// fold() joins the rows of the heads that share a key head: (batch, key heads, rows, width). unfold() separates them.
at::Tensor fold(const at::Tensor& tensor, int64_t key_heads) {
  return tensor.reshape({tensor.size(0), key_heads, tensor.size(1) / key_heads * tensor.size(2), tensor.size(3)});
}

at::Tensor unfold(const at::Tensor& tensor, const AttentionOperands& x) {
  return tensor.view({x.query.size(0), x.query.size(1), x.query.size(2), tensor.size(3)});
}

at::Tensor scores(const AttentionOperands& x) {
  at::Tensor result =
      unfold(at::matmul(fold(wide(x.query), x.key.size(1)), wide(x.key).transpose(2, 3)), x).mul_(x.scale());
  if (x.mask.defined()) {
    result.add_(x.mask);
  }
  if (x.options.is_causal) {
    const at::Tensor later = at::ones({x.query.size(2), x.key.size(2)}, result.options().dtype(at::kBool)).triu_(1);
    result.masked_fill_(later, -kInfinity);
  }
  return result;
}

// Returns the softmax of the scores. A row in which everything is masked becomes zero, not NaN.
at::Tensor probabilities(const at::Tensor& scores, const at::Tensor& logsumexp) {
  return at::softmax(scores, 3).masked_fill_(logsumexp.unsqueeze(3).eq(-kInfinity), 0.0);
}

// Returns the factors by which dropout multiplies the probabilities, or an undefined tensor without dropout.
at::Tensor dropout_factors(const AttentionOperands& x, const at::Tensor& like, runtime::PhiloxState random) {
  const double p = x.options.dropout_p;
  if (p == 0) {
    return {};
  }
  at::Tensor kept = at::empty(like.sizes(), like.options().dtype(at::kBool));
  bernoulli(kept, random, 1 - p);
  return at::mul(kept.to(like.scalar_type()), p == 1 ? 0.0 : 1 / (1 - p));
}

void formula_forward(const AttentionOperands& x, const runtime::PhiloxState& random, const at::Tensor& output,
                     at::Tensor logsumexp) {
  at::Tensor weights = scores(x);
  if (x.key.size(2) == 0) {
    output.zero_();
    logsumexp.fill_(-kInfinity);
    return;
  }
  at::logsumexp_out(logsumexp, weights, {3});
  weights = probabilities(weights, logsumexp);
  const at::Tensor factors = dropout_factors(x, weights, random);
  if (factors.defined()) {
    weights.mul_(factors);
  }
  output.copy_(unfold(at::matmul(fold(weights, x.key.size(1)), wide(x.value)), x));
}

void formula_backward(const AttentionOperands& x, const at::Tensor& grad, const at::Tensor& logsumexp,
                      const runtime::PhiloxState& random, at::Tensor& grad_query, at::Tensor& grad_key,
                      at::Tensor& grad_value, at::Tensor& grad_mask) {
  const int64_t key_heads = x.key.size(1);
  const at::Tensor weights = probabilities(scores(x), logsumexp);
  const at::Tensor factors = dropout_factors(x, weights, random);
  const at::Tensor folded_grad = fold(wide(grad), key_heads);
  if (grad_value.defined()) {
    const at::Tensor dropped = factors.defined() ? at::mul(weights, factors) : weights;
    grad_value.copy_(at::matmul(fold(dropped, key_heads).transpose(2, 3), folded_grad));
  }
  at::Tensor of_scores = unfold(at::matmul(folded_grad, wide(x.value).transpose(2, 3)), x);
  if (factors.defined()) {
    of_scores.mul_(factors);
  }
  of_scores.mul_(weights);
  of_scores.sub_(at::mul(weights, of_scores.sum(3, /*keepdim=*/true)));
  if (grad_mask.defined()) {
    grad_mask.copy_(of_scores.sum_to_size(grad_mask.sizes()));
  }
  const at::Tensor scaled = fold(of_scores.mul_(x.scale()), key_heads);
  if (grad_query.defined()) {
    grad_query.copy_(unfold(at::matmul(scaled, wide(x.key)), x));
  }
  if (grad_key.defined()) {
    grad_key.copy_(at::matmul(scaled.transpose(2, 3), fold(wide(x.query), key_heads)));
  }
}

}  // namespace

void attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor mask,
                       AttentionOptions options, runtime::PhiloxState random, at::Tensor& output, at::Tensor& logsumexp,
                       at::Tensor& seed, at::Tensor& offset) {
  seed.fill_(static_cast<int64_t>(random.seed()));
  offset.fill_(static_cast<int64_t>(random.offset()));
  const AttentionOperands x(query, key, value, mask, options);
  if (fits_flash(x, query.dim())) {
    flash_forward(x, batched(output), logsumexp);
  } else {
    formula_forward(x, random, batched(output), logsumexp);
  }
}

void attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        MaybeTensor mask, const at::Tensor& output, const at::Tensor& logsumexp,
                        AttentionOptions options, const at::Tensor& seed, const at::Tensor& offset,
                        at::Tensor& grad_query, at::Tensor& grad_key, at::Tensor& grad_value, at::Tensor& grad_mask) {
  const AttentionOperands x(query, key, value, mask, options);
  at::Tensor of_query = batched(grad_query);
  at::Tensor of_key = batched(grad_key);
  at::Tensor of_value = batched(grad_value);
  if (fits_flash(x, query.dim()) && !grad_mask.defined()) {
    flash_backward(x, batched(grad), batched(output), logsumexp, of_query, of_key, of_value);
    return;
  }
  const runtime::PhiloxState random(static_cast<uint64_t>(*seed.const_data_ptr<int64_t>()),
                                    static_cast<uint64_t>(*offset.const_data_ptr<int64_t>()));
  formula_backward(x, batched(grad), logsumexp, random, of_query, of_key, of_value, grad_mask);
}

}  // namespace openreg::ops::kernels
