// SPDX-License-Identifier: BSD-3-Clause
// The flash attention that PyTorch has named after the CPU. A program that was exported on the CPU contains it, and
// calls it on the device to which the program is moved. It is the device's own attention without dropout.
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward.h>
#include <ATen/ops/empty.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

void check_flash(const char* name, const at::Tensor& query, double dropout_p) {
  TORCH_CHECK(query.dim() == 4, name, ": expected a query of 4 dimensions (batch, heads, length, width), but got ",
              query.dim());
  TORCH_CHECK(dropout_p == 0, name, ": has no dropout, but got dropout_p=", dropout_p,
              "; call torch.nn.functional.scaled_dot_product_attention");
}

std::tuple<at::Tensor, at::Tensor> flash_attention(const at::Tensor& query, const at::Tensor& key,
                                                   const at::Tensor& value, double dropout_p, bool is_causal,
                                                   MaybeTensor mask, std::optional<double> scale) {
  check_flash(op::_scaled_dot_product_flash_attention_for_cpu::name, query, dropout_p);
  const auto results =
      at::_scaled_dot_product_fused_attention_overrideable(query, key, value, mask, dropout_p, is_causal, false, scale);
  return {std::get<0>(results), std::get<1>(results)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(const at::Tensor& grad, const at::Tensor& query,
                                                                        const at::Tensor& key, const at::Tensor& value,
                                                                        const at::Tensor& output,
                                                                        const at::Tensor& logsumexp, double dropout_p,
                                                                        bool is_causal, MaybeTensor mask,
                                                                        std::optional<double> scale) {
  check_flash(op::_scaled_dot_product_flash_attention_for_cpu_backward::name, query, dropout_p);
  const at::Tensor no_random = at::empty({}, query.options().dtype(at::kLong));  // read for dropout alone
  const auto [of_query, of_key, of_value, of_mask] = at::_scaled_dot_product_fused_attention_overrideable_backward(
      grad, query, key, value, mask.value_or(at::Tensor()), {true, true, true, false}, output, logsumexp, at::Tensor(),
      at::Tensor(), query.size(-2), key.size(-2), dropout_p, is_causal, no_random, no_random, scale);
  return {of_query, of_key, of_value};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_scaled_dot_product_flash_attention_for_cpu>(library, flash_attention);
  function<op::_scaled_dot_product_flash_attention_for_cpu_backward>(library, flash_attention_backward);
}

}  // namespace

}  // namespace openreg::ops
