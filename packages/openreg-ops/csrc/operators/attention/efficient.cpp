// SPDX-License-Identifier: BSD-3-Clause
// The operators of memory-efficient attention, for which PyTorch has only GPU kernels. Attention on nested tensors of
// layout torch.jagged calls them (src/openreg_ops/_nested.py), with sequences of any length, one after another. Forward
// and backward are one launch each, for any number of sequences.
#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>

#include <limits>

#include "kernels/varlen_attention.h"
#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/random.h"

namespace openreg::ops {

namespace {

constexpr Operator kEfficient{op::_efficient_attention_forward::name};
constexpr Operator kEfficientBackward{op::_efficient_attention_backward::name};

// The operands of forward and backward. Shapes are (batch, length, heads, width). With `starts`, the batch size is 1,
// and the length is that of all sequences together.
struct EfficientOperands {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& value;
  MaybeTensor bias;
  MaybeTensor starts;
  MaybeTensor key_starts;
  kernels::VarlenOptions options;

  bool is_ragged() const { return is_given(starts); }
  int64_t sequences() const { return is_ragged() ? starts->numel() - 1 : query.size(0); }
  int64_t heads() const { return query.size(2); }

  // Returns (sequences, heads, rows). Rows are rounded up to a multiple of 32, as in PyTorch's kernels, or are 0 unless
  // `is_wanted`.
  std::vector<int64_t> sizes_of_logsumexp(bool is_wanted) const {
    return {sequences(), heads(), is_wanted ? (options.longest + 31) / 32 * 32 : 0};
  }
};

bool is_starts(const at::Tensor& tensor) {
  return tensor.dim() == 1 && tensor.numel() > 0 &&
         (tensor.scalar_type() == at::kInt || tensor.scalar_type() == at::kLong);
}

void check_shapes(const Operator& op, const EfficientOperands& x) {
  TORCH_CHECK(x.query.dim() == 4 && x.key.dim() == 4 && x.value.dim() == 4 && x.query.size(0) == x.key.size(0) &&
                  x.key.size(0) == x.value.size(0) && x.key.size(1) == x.value.size(1) &&
                  x.query.size(2) == x.key.size(2) && x.key.size(2) == x.value.size(2) &&
                  x.query.size(3) == x.key.size(3) && x.query.size(3) > 0,
              op.name, ": query, key and value must be (batch, length, heads, width), with the same batch and heads, ",
              "query and key of one width, key and value of one length; got ", x.query.sizes(), ", ", x.key.sizes(),
              " and ", x.value.sizes());
  TORCH_CHECK(x.query.scalar_type() == x.key.scalar_type() && x.query.scalar_type() == x.value.scalar_type() &&
                  (dtype_bit(x.query.scalar_type()) & kFloating) != 0,
              op.name, ": query, key and value must be of one floating dtype, but got ", x.query.scalar_type(), ", ",
              x.key.scalar_type(), " and ", x.value.scalar_type());
}

void check_ragged(const Operator& op, const EfficientOperands& x) {
  TORCH_CHECK(is_given(x.starts) == is_given(x.key_starts), op.name,
              ": cu_seqlens_q and cu_seqlens_k must be given together");
  if (x.is_ragged()) {
    TORCH_CHECK(is_starts(*x.starts) && is_starts(*x.key_starts) && x.starts->numel() == x.key_starts->numel() &&
                    x.query.size(0) == 1,
                op.name, ": cu_seqlens_q and cu_seqlens_k must be integers of one dimension and of one length, with a ",
                "query of batch size 1");
    TORCH_CHECK(x.options.longest >= 0 && x.options.longest_key >= 0, op.name,
                ": max_seqlen_q and max_seqlen_k must be given with cu_seqlens_q and cu_seqlens_k");
    TORCH_CHECK(!is_given(x.bias), op.name, ": the openreg device takes no bias for sequences of any length; call ",
                "scaled_dot_product_attention for each sequence");
  }
}

void check_efficient(const Operator& op, const EfficientOperands& x) {
  check_shapes(op, x);
  check_ragged(op, x);
  TORCH_CHECK(x.options.dropout_p >= 0 && x.options.dropout_p <= 1,
              "dropout probability has to be between 0 and 1, but got ", x.options.dropout_p);
  const auto visible = static_cast<int64_t>(x.options.visible);
  TORCH_CHECK(visible >= 0 && visible <= 2, op.name, ": custom_mask_type must be 0, 1 or 2, but got ", visible);
  if (is_given(x.bias)) {
    const std::vector<int64_t> scores{x.query.size(0), x.query.size(2), x.query.size(1), x.key.size(1)};
    TORCH_CHECK(at::is_expandable_to(x.bias->sizes(), scores), op.name,
                ": expected a bias that broadcasts to the shape of the scores, ", scores, ", but got the shape ",
                x.bias->sizes());
    TORCH_CHECK(x.options.visible == kernels::Visible::kAll, op.name,
                ": the openreg device takes a bias or a custom_mask_type, not both; add the mask to the bias");
  }
}

void check_no_window(const Operator& op, MaybeTensor key_lengths, std::optional<int64_t> window_size) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_given(key_lengths) && !window_size.has_value(), op.name,
                              ": the openreg device does not support seqlen_k and window_size; give a bias instead");
}

at::Tensor heads_first(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.transpose(1, 2) : tensor;
}
at::Tensor unbatched(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.squeeze(0) : tensor;
}

// Returns a mask if `options.visible` requires one (mask_of()), or else the bias.
std::optional<at::Tensor> mask_for(MaybeTensor bias, const kernels::VarlenOptions& options, const at::Tensor& query,
                                   const at::Tensor& key) {
  std::optional<at::Tensor> mask = kernels::mask_of(options.visible, query.size(1), key.size(1));
  return mask.has_value() ? mask : bias;
}

void efficient_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor bias,
                      MaybeTensor starts, MaybeTensor key_starts, kernels::VarlenOptions options,
                      runtime::PhiloxState random, at::Tensor& output, at::Tensor& logsumexp, at::Tensor& seed,
                      at::Tensor& offset) {
  if (is_given(starts)) {
    at::Tensor rows = unbatched(output);
    kernels::varlen_attention_forward(unbatched(query), unbatched(key), unbatched(value), *starts, *key_starts, options,
                                      random, rows, logsumexp, seed, offset);
    return;
  }
  at::Tensor result = heads_first(output);
  at::Tensor sums = at::empty({query.size(0), query.size(2), query.size(1)}, logsumexp.options());
  kernels::attention_forward(heads_first(query), heads_first(key), heads_first(value),
                             mask_for(bias, options, query, key), options_of(options), random, result, sums, seed,
                             offset);
  if (logsumexp.size(2) > 0) {
    logsumexp.fill_(std::numeric_limits<double>::infinity());
    logsumexp.narrow(2, 0, sums.size(2)).copy_(sums);
  }
}

using EfficientResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt>;

EfficientResults efficient_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                     MaybeTensor bias, MaybeTensor starts, MaybeTensor key_starts,
                                     std::optional<int64_t> longest, std::optional<int64_t> longest_key,
                                     double dropout_p, int64_t visible, bool wants_logsumexp,
                                     std::optional<double> scale, MaybeTensor key_lengths,
                                     std::optional<int64_t> window_size) {
  const OperandDeviceGuard device(kEfficient, query, key, value, bias, starts, key_starts);
  check_no_window(kEfficient, key_lengths, window_size);
  const int64_t none = is_given(starts) ? -1 : 0;
  EfficientOperands x{
      query,
      key,
      value,
      bias,
      starts,
      key_starts,
      {dropout_p, static_cast<kernels::Visible>(visible), scale, longest.value_or(none), longest_key.value_or(none)}};
  check_efficient(kEfficient, x);
  if (!x.is_ragged()) {
    x.options.longest = query.size(1);
    x.options.longest_key = key.size(1);
  }
  const auto plain = query.options().memory_format(std::nullopt);
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes.back() = value.size(3);
  at::Tensor output = make_output(sizes, {}, plain);
  at::Tensor logsumexp =
      make_output(x.sizes_of_logsumexp(wants_logsumexp), {}, plain.dtype(at::toOpMathType(query.scalar_type())));
  at::Tensor seed = make_output({}, {}, plain.dtype(at::kLong));
  at::Tensor offset = make_output({}, {}, plain.dtype(at::kLong));
  const runtime::PhiloxState random =
      dropout_p > 0 ? reserve_steps(std::nullopt, device.index(), x.sequences() * steps_of(x.options, x.heads()))
                    : runtime::PhiloxState(0, 0);
  launch(kEfficient, device, &efficient_kernel, query, key, value, bias, starts, key_starts, x.options, random, output,
         logsumexp, seed, offset);
  return {std::move(output), std::move(logsumexp), std::move(seed),
          std::move(offset), x.options.longest,    x.options.longest_key};
}

void efficient_backward_kernel(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, MaybeTensor bias, MaybeTensor starts, MaybeTensor key_starts,
                               const at::Tensor& output, const at::Tensor& logsumexp, kernels::VarlenOptions options,
                               const at::Tensor& seed, const at::Tensor& offset, at::Tensor& grad_query,
                               at::Tensor& grad_key, at::Tensor& grad_value, at::Tensor& grad_bias) {
  if (is_given(starts)) {
    at::Tensor of_query = unbatched(grad_query);
    at::Tensor of_key = unbatched(grad_key);
    at::Tensor of_value = unbatched(grad_value);
    kernels::varlen_attention_backward(unbatched(grad), unbatched(query), unbatched(key), unbatched(value), *starts,
                                       *key_starts, unbatched(output), logsumexp, options, seed, offset, of_query,
                                       of_key, of_value);
    return;
  }
  at::Tensor of_query = heads_first(grad_query);
  at::Tensor of_key = heads_first(grad_key);
  at::Tensor of_value = heads_first(grad_value);
  kernels::attention_backward(heads_first(grad), heads_first(query), heads_first(key), heads_first(value),
                              mask_for(bias, options, query, key), heads_first(output),
                              logsumexp.narrow(2, 0, query.size(1)), options_of(options), seed, offset, of_query,
                              of_key, of_value, grad_bias);
}

// Returns new gradients. With `share_storage` they are parts of one tensor, for a query, key and value that are parts
// of one tensor.
std::array<at::Tensor, 3> make_gradients(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         bool share_storage) {
  if (!share_storage) {
    return {make_output_like(query), make_output_like(key), make_output_like(value)};
  }
  TORCH_CHECK(query.sizes() == key.sizes() && key.sizes() == value.sizes(), kEfficientBackward.name,
              ": expected query, key and value of one shape, because their gradients share a storage, but got ",
              query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes.insert(sizes.begin() + 2, 3);
  const at::Tensor all = make_output(sizes, {}, query.options());
  return {all.select(2, 0), all.select(2, 1), all.select(2, 2)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor bias,
    const at::Tensor& output, MaybeTensor starts, MaybeTensor key_starts, int64_t longest, int64_t longest_key,
    const at::Tensor& logsumexp, double dropout_p, const at::Tensor& seed, const at::Tensor& offset, int64_t visible,
    bool wants_grad_bias, std::optional<double> scale, std::optional<int64_t> /*split_count*/,
    std::optional<int64_t> window_size, bool share_storage) {
  if (!grad.defined()) {
    return {};
  }
  const OperandDeviceGuard device(kEfficientBackward, grad, query, key, value, bias, output, starts, key_starts,
                                  logsumexp, seed, offset);
  check_no_window(kEfficientBackward, std::nullopt, window_size);
  EfficientOperands x{query,
                      key,
                      value,
                      bias,
                      starts,
                      key_starts,
                      {dropout_p, static_cast<kernels::Visible>(visible), scale, longest, longest_key}};
  check_efficient(kEfficientBackward, x);
  c10::DimVector sizes(query.sizes());
  sizes.back() = value.size(3);
  expect(kEfficientBackward.name, "out", output, sizes, query.scalar_type());
  expect(kEfficientBackward.name, "grad_out_", grad, sizes, query.scalar_type());
  TORCH_CHECK(logsumexp.sizes() == c10::IntArrayRef(x.sizes_of_logsumexp(/*is_wanted=*/true)), kEfficientBackward.name,
              ": expected logsumexp of shape ", x.sizes_of_logsumexp(true),
              ", as the forward operator computes it with compute_log_sumexp=True, but got ", logsumexp.sizes());
  TORCH_CHECK(logsumexp.scalar_type() == at::toOpMathType(query.scalar_type()), kEfficientBackward.name,
              ": expected logsumexp of the type ", at::toOpMathType(query.scalar_type()),
              ", as the forward operator computes it, but got ", logsumexp.scalar_type());
  TORCH_CHECK(x.is_ragged() || longest >= query.size(1), kEfficientBackward.name,
              ": expected max_seqlen_q of at least ", query.size(1), ", the rows of the query, but got ", longest,
              "; pass what the forward operator returned");
  expect_count(kEfficientBackward.name, "philox_seed", seed, 1, at::kLong);
  expect_count(kEfficientBackward.name, "philox_offset", offset, 1, at::kLong);
  auto [grad_query, grad_key, grad_value] = make_gradients(query, key, value, share_storage);
  at::Tensor grad_bias = wants_grad_bias && is_given(bias) ? make_output_like(*bias) : at::Tensor();
  launch(kEfficientBackward, device, &efficient_backward_kernel, grad, query, key, value, bias, starts, key_starts,
         output, logsumexp, x.options, seed, offset, grad_query, grad_key, grad_value, grad_bias);
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value), std::move(grad_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_efficient_attention_forward>(library, efficient_attention);
  function<op::_efficient_attention_backward>(library, efficient_attention_backward);
}

}  // namespace

}  // namespace openreg::ops
