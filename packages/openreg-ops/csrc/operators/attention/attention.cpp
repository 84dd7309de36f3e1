// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot-product attention, with one launch forward and one backward. scaled_dot_product_attention() selects its
// implementation by _fused_sdp_choice_stub; the operator `_fused_sdp_choice` is for users. PyTorch reserves the
// operators with "overrideable" in their names for a device's own implementation.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/empty_like.h>

#include "kernels/attention.h"
#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/random.h"

namespace openreg::ops {

namespace {

constexpr Operator kAttention{op::_scaled_dot_product_fused_attention_overrideable::name, kChecked};
constexpr Operator kAttentionBackward{op::_scaled_dot_product_fused_attention_overrideable_backward::name};

// Returns true if a fused implementation is enabled. Ours is a flash kernel, too, so it also serves callers that enable
// one of PyTorch's, as code written for GPUs does.
bool fused_is_enabled() {
  const at::Context& context = at::globalContext();
  return context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP();
}

// Returns false for nested tensors, vmap and forward-mode differentiation, because their rules cover only the operators
// of the math implementation.
bool is_plain(const at::Tensor& tensor) {
  return !tensor.is_nested() && !tensor.key_set().has(c10::DispatchKey::FuncTorchBatched) &&
         !tensor._fw_grad(/*level=*/0).defined();
}

// Returns true if the fused kernel supports the operands. Their sizes may be symbolic while torch.compile traces.
bool fits_fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor mask,
                bool is_causal, bool enable_gqa) {
  const int64_t dims = query.dim();
  const bool is_supported = (dtype_bit(query.scalar_type()) & kFloating) != 0;
  if ((dims != 3 && dims != 4) || key.dim() != dims || value.dim() != dims || !is_supported) {
    return false;
  }
  if (!is_plain(query) || !is_plain(key) || !is_plain(value) || (is_given(mask) && (is_causal || !is_plain(*mask)))) {
    return false;
  }
  if (query.scalar_type() != key.scalar_type() || query.scalar_type() != value.scalar_type()) {
    return false;
  }
  const c10::SymInt heads = query.sym_size(-3);
  const c10::SymInt key_heads = key.sym_size(-3);
  const bool shared = enable_gqa && key_heads != 0 && heads % key_heads == 0;
  return (dims == 3 || (query.sym_size(0) == key.sym_size(0) && query.sym_size(0) == value.sym_size(0))) &&
         (heads == key_heads || shared) && key_heads == value.sym_size(-3) && query.sym_size(-1) == key.sym_size(-1) &&
         key.sym_size(-2) == value.sym_size(-2) && query.sym_size(-1) != 0;
}

int64_t fused_sdp_choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor mask,
                         double /*dropout_p*/, bool is_causal, std::optional<double> /*scale*/, bool enable_gqa) {
  if (fused_is_enabled() && fits_fused(query, key, value, mask, is_causal, enable_gqa)) {
    return static_cast<int64_t>(at::SDPBackend::overrideable);
  }
  TORCH_CHECK(at::globalContext().userEnabledMathSDP(),
              "No viable backend for scaled_dot_product_attention was found: the openreg device's fused kernel is "
              "disabled or does not take these operands, and the math kernel is disabled; enable SDPBackend.MATH in "
              "torch.nn.attention.sdpa_kernel");
  return static_cast<int64_t>(at::SDPBackend::math);
}

// Throws c10::Error if the kernels do not support the operands. This happens only in a direct call, because
// scaled_dot_product_attention() calls fused_sdp_choice() first.
void check_operands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor mask,
                    double dropout_p) {
  TORCH_CHECK(fits_fused(query, key, value, std::nullopt, false, true), kAttention.name,
              ": query, key and value must be (batch, heads, length, width) or (heads, length, width), of one floating "
              "dtype, with the same batch and width, and heads a multiple of those of key and value; got ",
              query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  TORCH_CHECK(dropout_p >= 0 && dropout_p <= 1, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  if (is_given(mask)) {
    std::vector<int64_t> scores = query.sizes().vec();
    scores.back() = key.size(-2);
    TORCH_CHECK(at::is_expandable_to(mask->sizes(), scores), kAttention.name,
                ": expected a mask that broadcasts to the shape of the scores, ", scores, ", but got the shape ",
                mask->sizes());
    TORCH_CHECK(mask->scalar_type() == at::kBool || mask->scalar_type() == at::kFloat ||
                    mask->scalar_type() == query.scalar_type(),
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
                mask->scalar_type(), " and query.dtype: ", query.scalar_type(), " instead.");
  }
}

// Returns a new output of the query's shape, except that its last size is `width`. Its dimensions have the query's
// order in memory.
at::Tensor make_output_of_width(const at::Tensor& query, int64_t width) {
  if (query.size(-1) == width) {
    return at::empty_like(query);
  }
  std::vector<int64_t> sizes = query.sizes().vec();
  sizes.back() = width;
  return make_output(sizes, at::infer_dense_strides(sizes, query.strides()), query.options());
}

using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                           at::Tensor, at::Tensor>;

Forward fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, MaybeTensor mask,
                        double dropout_p, bool is_causal, bool return_debug_mask, std::optional<double> scale) {
  const OperandDeviceGuard device(kAttention, query, key, value, mask);
  check_operands(query, key, value, mask, dropout_p);
  TORCH_CHECK(!return_debug_mask, kAttention.name,
              ": the openreg device keeps no debug mask; pass return_debug_mask=False");
  const auto plain = query.options().memory_format(std::nullopt);
  const int64_t batch = query.dim() == 4 ? query.size(0) : 1;
  const int64_t heads = query.size(-3);
  const int64_t queries = query.size(-2);
  const int64_t keys = key.size(-2);
  at::Tensor output = make_output_of_width(query, value.size(-1));
  at::Tensor logsumexp = make_output({batch, heads, queries}, {}, plain.dtype(at::toOpMathType(query.scalar_type())));
  at::Tensor seed = make_output({}, {}, plain.dtype(at::kLong));
  at::Tensor offset = make_output({}, {}, plain.dtype(at::kLong));
  const runtime::PhiloxState random = dropout_p > 0
                                          ? reserve_random(std::nullopt, device.index(), batch * heads * queries * keys)
                                          : runtime::PhiloxState(0, 0);
  launch(kAttention, device, &kernels::attention_forward, query, key, value, mask,
         kernels::AttentionOptions{dropout_p, is_causal, scale}, random, output, logsumexp, seed, offset);
  return {std::move(output), std::move(logsumexp), at::Tensor(), at::Tensor(), queries, keys,
          std::move(seed),   std::move(offset),    at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> fused_attention_backward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& mask, std::array<bool, 4> wanted, const at::Tensor& output, const at::Tensor& logsumexp,
    const at::Tensor& /*cum_seq_q*/, const at::Tensor& /*cum_seq_k*/, int64_t /*max_q*/, int64_t /*max_k*/,
    double dropout_p, bool is_causal, const at::Tensor& seed, const at::Tensor& offset, std::optional<double> scale) {
  if (!grad.defined()) {
    return {};
  }
  const OperandDeviceGuard device(kAttentionBackward, grad, query, key, value, mask, output, logsumexp, seed, offset);
  const std::optional<at::Tensor> maybe_mask = mask.defined() ? std::optional(mask) : std::nullopt;
  check_operands(query, key, value, maybe_mask, dropout_p);
  c10::DimVector sizes(query.sizes());
  sizes.back() = value.size(-1);
  expect(kAttentionBackward.name, "out", output, sizes, query.scalar_type());
  expect(kAttentionBackward.name, "grad_out", grad, sizes, query.scalar_type());
  expect(kAttentionBackward.name, "logsumexp", logsumexp,
         {query.dim() == 4 ? query.size(0) : 1, query.size(-3), query.size(-2)}, at::toOpMathType(query.scalar_type()));
  expect_count(kAttentionBackward.name, "philox_seed", seed, 1, at::kLong);
  expect_count(kAttentionBackward.name, "philox_offset", offset, 1, at::kLong);
  const auto gradient_of = [](bool needed, const at::Tensor& operand) {
    return needed && operand.defined() ? at::empty_like(operand) : at::Tensor();
  };
  at::Tensor grad_query = gradient_of(wanted[0], query);
  at::Tensor grad_key = gradient_of(wanted[1], key);
  at::Tensor grad_value = gradient_of(wanted[2], value);
  at::Tensor grad_mask = gradient_of(wanted[3], mask);
  launch(kAttentionBackward, device, &kernels::attention_backward, grad, query, key, value, maybe_mask, output,
         logsumexp, kernels::AttentionOptions{dropout_p, is_causal, scale}, seed, offset, grad_query, grad_key,
         grad_value, grad_mask);
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value), std::move(grad_mask)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_fused_sdp_choice>(library, fused_sdp_choice);
  function<op::_scaled_dot_product_fused_attention_overrideable>(library, fused_attention);
  function<op::_scaled_dot_product_fused_attention_overrideable_backward>(library, fused_attention_backward);
}

}  // namespace

}  // namespace openreg::ops

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &openreg::ops::fused_sdp_choice)

}  // namespace at::native
