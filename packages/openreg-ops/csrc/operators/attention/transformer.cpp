// SPDX-License-Identifier: BSD-3-Clause
// The operators that torch.nn.TransformerEncoderLayer and torch.nn.MultiheadAttention call in evaluation mode, with one
// launch for a whole layer. Only the masked softmax has a backward operator.
#include <ATen/WrapDimUtils.h>

#include <string>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Values of `mask_type`. A source mask is (length, length), and a padding mask is (batch, length). Masks of another
// type have the full shape (batch, heads, length, length).
constexpr int64_t kSourceMask = 0;
constexpr int64_t kPaddingMask = 1;

void check_attention(const char* name, const at::Tensor& query, int64_t embed_dim, int64_t heads,
                     const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, MaybeTensor mask) {
  TORCH_CHECK(query.dim() == 3 && query.size(2) == embed_dim, name, ": expected an input of shape (batch, length, ",
              embed_dim, "), but got ", query.sizes());
  TORCH_CHECK(heads > 0 && embed_dim % heads == 0, name, ": expected an embedding width that is a multiple of the ",
              heads, " heads, but got ", embed_dim);
  TORCH_CHECK(qkv_weight.dim() == 2 && qkv_weight.size(0) == 3 * embed_dim && qkv_weight.size(1) == embed_dim &&
                  qkv_bias.dim() == 1 && qkv_bias.size(0) == 3 * embed_dim,
              name, ": expected the weight and bias of query, key and value to have ", 3 * embed_dim, " rows, but got ",
              qkv_weight.sizes(), " and ", qkv_bias.sizes());
  TORCH_CHECK(!is_given(mask) || mask->scalar_type() == at::kBool, name, ": expected a mask of bool, but got ",
              mask->scalar_type());
}

constexpr auto meta_layer = [](const at::Tensor& src, int64_t embed_dim, int64_t heads, const at::Tensor& qkv_weight,
                               const at::Tensor& qkv_bias, const auto&... /*rest*/) {
  check_attention(op::_transformer_encoder_layer_fwd::name, src, embed_dim, heads, qkv_weight, qkv_bias, std::nullopt);
  return output_of_shape(src);
};

std::array<OutputSpec, 2> meta_multi_head_attention(const at::Tensor& query, const at::Tensor& key,
                                                    const at::Tensor& value, int64_t embed_dim, int64_t heads,
                                                    const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                                                    const at::Tensor& /*proj_weight*/, const at::Tensor& /*proj_bias*/,
                                                    MaybeTensor mask, bool need_weights, bool average,
                                                    std::optional<int64_t> /*mask_type*/) {
  constexpr const char* kName = op::_native_multi_head_attention::name;
  check_attention(kName, query, embed_dim, heads, qkv_weight, qkv_bias, mask);
  TORCH_CHECK(
      key.dim() == 3 && key.sizes() == value.sizes() && key.size(0) == query.size(0) && key.size(2) == embed_dim, kName,
      ": expected key and value of shape (", query.size(0), ", length, ", embed_dim, "), but got ", key.sizes(),
      " and ", value.sizes());
  OutputSpec weights;
  if (need_weights && average) {
    weights = output_of({query.size(0), query.size(1), key.size(1)}, query.scalar_type());
  } else if (need_weights) {
    weights = output_of({query.size(0), heads, query.size(1), key.size(1)}, query.scalar_type());
  }
  return {output_of_shape(query), weights};
}

// Returns true if a two-dimensional mask has the shape that its type requires for an input (batch, heads, length,
// length).
bool fits_by_type(const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> type) {
  const bool columns = self.size(2) == mask.size(1);
  return (type == kSourceMask && self.size(2) == mask.size(0) && columns) ||
         (type == kPaddingMask && self.size(0) == mask.size(0) && columns);
}

OutputSpec meta_masked_softmax(const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> dim,
                               std::optional<int64_t> mask_type) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  at::maybe_wrap_dim(dim.value_or(-1), self.dim());
  // The type matters only for a two-dimensional mask and a four-dimensional input. All other masks have the input's
  // shape.
  const bool by_type = self.dim() == 4 && mask.dim() == 2;
  TORCH_CHECK(by_type ? fits_by_type(self, mask, mask_type) : mask.sizes() == self.sizes(), op::_masked_softmax::name,
              ": a mask of shape ", mask.sizes(), by_type ? " and type " : "",
              by_type && mask_type.has_value() ? std::to_string(*mask_type) : "", " does not fit an input of shape ",
              self.sizes());
  return output_of_shape(self);
}

OutputSpec meta_masked_softmax_backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& mask,
                                        std::optional<int64_t> /*dim*/) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  TORCH_CHECK(grad.sizes() == mask.sizes() && grad.sizes() == output.sizes(), op::_masked_softmax_backward::name,
              ": expected gradient, output and mask of one shape, but got ", grad.sizes(), ", ", output.sizes(),
              " and ", mask.sizes());
  expect_like(op::_masked_softmax_backward::name, "grad_output", grad, output);
  return output_of_shape(grad);
}

std::array<OutputSpec, 3> meta_rescale(const at::Tensor& qkv, const at::Tensor& bias, int64_t heads) {
  TORCH_CHECK(
      heads > 0 && qkv.dim() == 3 && bias.dim() == 1 && bias.size(0) == qkv.size(2) && qkv.size(2) % (3 * heads) == 0,
      op::_transform_bias_rescale_qkv::name,
      ": expected (batch, length, 3 * width) and a bias of 3 * width elements, with a width of ", heads,
      " heads, but got ", qkv.sizes(), " and ", bias.sizes());
  const OutputSpec part = output_of({qkv.size(0), heads, qkv.size(1), qkv.size(2) / (3 * heads)}, qkv.scalar_type());
  return {part, part, part};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_layer, op::_transformer_encoder_layer_fwd>(library, cpu::_transformer_encoder_layer_fwd);
  unstructured<meta_multi_head_attention, op::_native_multi_head_attention>(library, cpu::_native_multi_head_attention);
  unstructured<meta_masked_softmax, op::_masked_softmax>(library, cpu::_masked_softmax);
  unstructured<meta_masked_softmax_backward, op::_masked_softmax_backward>(library, cpu::_masked_softmax_backward,
                                                                           kFloats);
  unstructured<meta_rescale, op::_transform_bias_rescale_qkv>(library, cpu::_transform_bias_rescale_qkv);
}

}  // namespace

}  // namespace openreg::ops
