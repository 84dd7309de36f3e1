// SPDX-License-Identifier: BSD-3-Clause
// Fake quantization for quantization-aware training: dense operators with gradients that round numbers as quantization
// would. choose_qparams_optimized selects a scale and a zero point.
#include "registration/cached_meta.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

void check_range(int64_t smallest, int64_t largest) {
  TORCH_CHECK(smallest <= largest, "`quant_min` should be less than or equal to `quant_max`.");
}

std::array<OutputSpec, 2> numbers_and_mask(const at::Tensor& self) {
  return {output_like(self), output_like(self, at::kBool)};
}

std::array<OutputSpec, 2> meta_per_tensor(const at::Tensor& self, double /*scale*/, int64_t zero_point,
                                          int64_t smallest, int64_t largest) {
  check_range(smallest, largest);
  TORCH_CHECK(zero_point >= smallest && zero_point <= largest,
              "`zero_point` must be between `quant_min` and `quant_max`.");
  return numbers_and_mask(self);
}

std::array<OutputSpec, 2> meta_by_tensors(const at::Tensor& self, const at::Tensor& scale, const at::Tensor& zero_point,
                                          const at::Tensor& enabled, int64_t smallest, int64_t largest) {
  check_range(smallest, largest);
  TORCH_CHECK(
      scale.numel() == 1 && zero_point.numel() == 1 && enabled.numel() == 1,
      "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams: scale, zero_point and fake_quant_enabled must "
      "have one element each, got ",
      scale.numel(), ", ", zero_point.numel(), " and ", enabled.numel());
  return numbers_and_mask(self);
}

// The kernel checks the range of the zero points, so the launch is synchronous, as on a GPU.
constexpr auto meta_per_channel = [](const at::Tensor& self, const auto&... /*rest*/) {
  return numbers_and_mask(self);
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_per_tensor, op::fake_quantize_per_tensor_affine_cachemask>(
      library, cpu::fake_quantize_per_tensor_affine_cachemask, kFloats);
  unstructured<meta_by_tensors, op::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams>(
      library, cpu::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams, kFloats);
  unstructured<meta_per_channel, op::fake_quantize_per_channel_affine_cachemask>(
      library, cpu::fake_quantize_per_channel_affine_cachemask,
      {.refused = kNotFloating, .data_check = DataCheck::kAlways});
  cached_meta(library,
              {"_fake_quantize_learnable_per_channel_affine", "_fake_quantize_learnable_per_channel_affine_backward",
               "_fake_quantize_learnable_per_tensor_affine", "_fake_quantize_learnable_per_tensor_affine_backward",
               "_fused_moving_avg_obs_fq_helper", "_saturate_weight_to_fp16", "choose_qparams_optimized"});
}

}  // namespace

}  // namespace openreg::ops
