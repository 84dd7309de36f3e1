// SPDX-License-Identifier: BSD-3-Clause
// What torch.nn.TransformerEncoderLayer and torch.nn.MultiheadAttention run in evaluation: a whole layer is one launch.
// They have no backward.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_masked_softmax_backward_cpu_dispatch.h>
#include <ATen/ops/_masked_softmax_cpu_dispatch.h>
#include <ATen/ops/_native_multi_head_attention_cpu_dispatch.h>
#include <ATen/ops/_transform_bias_rescale_qkv_cpu_dispatch.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_cpu_dispatch.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_ops.h>
#include <torch/library.h>

#include <string>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

// The types of mask: (length, length), (batch, length), or the full (batch, heads, length, length).
constexpr int64_t kSourceMask = 0;
constexpr int64_t kPaddingMask = 1;

void check_attention(const char* name, const at::Tensor& query, int64_t embed_dim, int64_t heads,
                     const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, MaybeTensor mask) {
  TORCH_CHECK(query.dim() == 3 && query.size(2) == embed_dim, name, ": expected an input of shape (batch, length, ",
              embed_dim, "), but got ", query.sizes());
  TORCH_CHECK(heads > 0 && embed_dim % heads == 0, name, ": the embedding width ", embed_dim,
              " is no multiple of the number of heads ", heads);
  TORCH_CHECK(qkv_weight.dim() == 2 && qkv_weight.size(0) == 3 * embed_dim && qkv_weight.size(1) == embed_dim &&
                  qkv_bias.dim() == 1 && qkv_bias.size(0) == 3 * embed_dim,
              name, ": expected the weight and bias of query, key and value to have ", 3 * embed_dim, " rows, but got ",
              qkv_weight.sizes(), " and ", qkv_bias.sizes());
  TORCH_CHECK(!is_given(mask) || mask->scalar_type() == at::kBool, name, ": expected a mask of bool, but got ",
              mask->scalar_type());
}

// One launch of the CPU's operator for a layer; its arguments are the schema's.
template <class Schema>
struct EncoderLayer;

template <class... Args>
struct EncoderLayer<at::Tensor(const at::Tensor&, int64_t, int64_t, const at::Tensor&, const at::Tensor&, Args...)> {
  static void kernel(const at::Tensor& src, int64_t embed_dim, int64_t heads, const at::Tensor& qkv_weight,
                     const at::Tensor& qkv_bias, Args... args, at::Tensor& output) {
    output.copy_(at::cpu::_transformer_encoder_layer_fwd(src, embed_dim, heads, qkv_weight, qkv_bias, args...));
  }

  static at::Tensor call(const at::Tensor& src, int64_t embed_dim, int64_t heads, const at::Tensor& qkv_weight,
                         const at::Tensor& qkv_bias, Args... args) {
    constexpr const char* kName = "aten::_transformer_encoder_layer_fwd";
    const c10::Device device = device_of(kName, src, qkv_weight);
    check_same_device(kName, device, src, qkv_weight, qkv_bias, args...);
    check_attention(kName, src, embed_dim, heads, qkv_weight, qkv_bias, std::nullopt);
    const CurrentDevice current(device);
    at::Tensor output = make_output(src.sizes(), {}, src.options().memory_format(std::nullopt));
    if (src.numel() > 0) {
      launch_function(kName, device, &kernel, src, embed_dim, heads, qkv_weight, qkv_bias, args..., output);
    }
    return output;
  }
};

void attention_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t embed_dim,
                      int64_t heads, const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                      const at::Tensor& proj_weight, const at::Tensor& proj_bias, MaybeTensor mask, bool average,
                      std::optional<int64_t> mask_type, at::Tensor& output, at::Tensor& weights) {
  const auto [computed, computed_weights] =
      at::cpu::_native_multi_head_attention(query, key, value, embed_dim, heads, qkv_weight, qkv_bias, proj_weight,
                                            proj_bias, mask, weights.defined(), average, mask_type);
  output.copy_(computed);
  copy_if_defined(weights, computed_weights);
}

std::tuple<at::Tensor, at::Tensor> native_multi_head_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t embed_dim, int64_t heads,
    const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, const at::Tensor& proj_weight,
    const at::Tensor& proj_bias, MaybeTensor mask, bool need_weights, bool average, std::optional<int64_t> mask_type) {
  constexpr const char* kName = "aten::_native_multi_head_attention";
  const c10::Device device = device_of(kName, query, key, value);
  check_same_device(kName, device, query, key, value, qkv_weight, qkv_bias, proj_weight, proj_bias, mask);
  check_attention(kName, query, embed_dim, heads, qkv_weight, qkv_bias, mask);
  TORCH_CHECK(
      key.dim() == 3 && key.sizes() == value.sizes() && key.size(0) == query.size(0) && key.size(2) == embed_dim, kName,
      ": expected key and value of shape (", query.size(0), ", length, ", embed_dim, "), but got ", key.sizes(),
      " and ", value.sizes());
  const CurrentDevice current(device);
  const auto options = query.options().memory_format(std::nullopt);
  at::Tensor output = make_output(query.sizes(), {}, options);
  at::Tensor weights;
  if (need_weights && average) {
    weights = make_output({query.size(0), query.size(1), key.size(1)}, {}, options);
  } else if (need_weights) {
    weights = make_output({query.size(0), heads, query.size(1), key.size(1)}, {}, options);
  }
  launch_function(kName, device, &attention_kernel, query, key, value, embed_dim, heads, qkv_weight, qkv_bias,
                  proj_weight, proj_bias, mask, average, mask_type, output, weights);
  return {std::move(output), std::move(weights)};
}

void masked_softmax_kernel(const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> dim,
                           std::optional<int64_t> mask_type, at::Tensor& output) {
  output.copy_(at::cpu::_masked_softmax(self, mask, dim, mask_type));
}

// Whether a mask of two dimensions is a source mask (length, length) or a padding mask (batch, length) for an input
// (batch, heads, length, length).
bool fits_by_type(const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> type) {
  const bool columns = self.size(2) == mask.size(1);
  return (type == kSourceMask && self.size(2) == mask.size(0) && columns) ||
         (type == kPaddingMask && self.size(0) == mask.size(0) && columns);
}

at::Tensor masked_softmax(const at::Tensor& self, const at::Tensor& mask, std::optional<int64_t> dim,
                          std::optional<int64_t> mask_type) {
  constexpr const char* kName = "aten::_masked_softmax";
  const c10::Device device = device_of(kName, self, mask);
  check_same_device(kName, device, self, mask);
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  at::maybe_wrap_dim(dim.value_or(-1), self.dim());
  // Other masks than of two dimensions for an input of four have the input's own shape, whatever the type.
  const bool by_type = self.dim() == 4 && mask.dim() == 2;
  TORCH_CHECK(by_type ? fits_by_type(self, mask, mask_type) : mask.sizes() == self.sizes(), kName, ": a mask of shape ",
              mask.sizes(), by_type ? " and type " : "",
              by_type && mask_type.has_value() ? std::to_string(*mask_type) : "", " does not fit an input of shape ",
              self.sizes());
  const CurrentDevice current(device);
  at::Tensor output = make_output(self.sizes(), {}, self.options().memory_format(std::nullopt));
  launch_function(kName, device, &masked_softmax_kernel, self, mask, dim, mask_type, output);
  return output;
}

void masked_softmax_backward_kernel(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& mask,
                                    std::optional<int64_t> dim, at::Tensor& result) {
  result.copy_(at::cpu::_masked_softmax_backward(grad, output, mask, dim));
}

at::Tensor masked_softmax_backward(const at::Tensor& grad, const at::Tensor& output, const at::Tensor& mask,
                                   std::optional<int64_t> dim) {
  constexpr const char* kName = "aten::_masked_softmax_backward";
  const c10::Device device = device_of(kName, grad, output, mask);
  check_same_device(kName, device, grad, output, mask);
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  TORCH_CHECK(grad.sizes() == mask.sizes() && grad.sizes() == output.sizes(), kName,
              ": expected gradient, output and mask of one shape, but got ", grad.sizes(), ", ", output.sizes(),
              " and ", mask.sizes());
  const CurrentDevice current(device);
  at::Tensor result = make_output(grad.sizes(), {}, grad.options().memory_format(std::nullopt));
  launch_function(kName, device, &masked_softmax_backward_kernel, grad, output, mask, dim, result);
  return result;
}

void rescale_kernel(const at::Tensor& qkv, const at::Tensor& bias, int64_t heads, at::Tensor& query, at::Tensor& key,
                    at::Tensor& value) {
  const auto [q, k, v] = at::cpu::_transform_bias_rescale_qkv(qkv, bias, heads);
  query.copy_(q);
  key.copy_(k);
  value.copy_(v);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> transform_bias_rescale_qkv(const at::Tensor& qkv, const at::Tensor& bias,
                                                                          int64_t heads) {
  constexpr const char* kName = "aten::_transform_bias_rescale_qkv";
  const c10::Device device = device_of(kName, qkv, bias);
  check_same_device(kName, device, qkv, bias);
  TORCH_CHECK(
      heads > 0 && qkv.dim() == 3 && bias.dim() == 1 && bias.size(0) == qkv.size(2) && qkv.size(2) % (3 * heads) == 0,
      kName, ": expected (batch, length, 3 * width) and a bias of 3 * width elements, with a width of ", heads,
      " heads, but got ", qkv.sizes(), " and ", bias.sizes());
  const CurrentDevice current(device);
  const auto part = [&] {
    return make_output({qkv.size(0), heads, qkv.size(1), qkv.size(2) / (3 * heads)}, {},
                       qkv.options().memory_format(std::nullopt));
  };
  at::Tensor query = part();
  at::Tensor key = part();
  at::Tensor value = part();
  launch_function(kName, device, &rescale_kernel, qkv, bias, heads, query, key, value);
  return {std::move(query), std::move(key), std::move(value)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_transformer_encoder_layer_fwd",
               TORCH_FN((EncoderLayer<SchemaOf<at::_ops::_transformer_encoder_layer_fwd>>::call)));
  library.impl("_native_multi_head_attention", TORCH_FN(native_multi_head_attention));
  library.impl("_masked_softmax", TORCH_FN(masked_softmax));
  library.impl("_masked_softmax_backward", TORCH_FN(masked_softmax_backward));
  library.impl("_transform_bias_rescale_qkv", TORCH_FN(transform_bias_rescale_qkv));
}

}  // namespace

}  // namespace openreg::ops
