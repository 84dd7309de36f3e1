// SPDX-License-Identifier: BSD-3-Clause
// Conversions from numbers to quantized integers and back, and their parameters: quantize_per_tensor,
// quantize_per_channel, dequantize, int_repr, q_scale and similar operators.
#include <ATen/native/quantized/AffineQuantizer.h>
#include <ATen/native/quantized/cpu/QuantUtils.h>
#include <ATen/ops/dequantize_native.h>
#include <ATen/ops/quantize_per_tensor_native.h>

#include "registration/declare.h"
#include "registration/non_strided.h"
#include "support/quantized.h"

namespace openreg::ops {

namespace {

void check_numbers(const at::Tensor& self) {
  TORCH_CHECK(self.scalar_type() == at::kFloat, "Quantize only works on Float Tensor, got ", self.scalar_type());
}

void quantize_per_tensor_kernel(const at::Tensor& numbers, double scale, int64_t zero_point, at::Tensor& output) {
  const at::Tensor contiguous = numbers.contiguous(output.suggest_memory_format());
  at::native::quantize_tensor_per_tensor_affine(contiguous, output, scale, zero_point);
}

void quantize_per_channel_kernel(const at::Tensor& numbers, const at::Tensor& scales, const at::Tensor& zero_points,
                                 int64_t axis, at::Tensor& output) {
  if (zero_points.is_floating_point()) {
    at::native::quantize_tensor_per_channel_float_qparams(numbers.contiguous(), output, scales, zero_points, axis);
    return;
  }
  const at::Tensor contiguous = numbers.contiguous(output.suggest_memory_format());
  at::native::quantize_tensor_per_channel_affine(contiguous, output, scales, zero_points, axis);
}

void dequantize_kernel(const at::Tensor& quantized, at::Tensor& numbers) {
  quantizer_of(quantized)->dequantize_out(numbers, quantized);
}

// Throws c10::Error unless the dtype's integers can represent the zero point.
void check_zero_point(int64_t zero_point, c10::ScalarType dtype) {
  AT_DISPATCH_QINT_AND_SUB_BYTE_TYPES(dtype, "quantize_tensor_per_tensor_affine", [&] {
    using Integer = std::numeric_limits<underlying_t>;
    TORCH_CHECK(zero_point <= Integer::max(), "quantize_tensor_per_tensor_affine zero_point ", zero_point,
                " is above upper bound.");
    TORCH_CHECK(zero_point >= Integer::min(), "quantize_tensor_per_tensor_affine zero_point ", zero_point,
                " is below lower bound.");
  });
}

// Throws c10::Error unless the quantizer has one scale for each channel of the tensor.
void check_channels(const at::Tensor& tensor, const at::PerChannelAffineQuantizer& quantizer, const char* what) {
  const int64_t axis = quantizer.axis();
  const int64_t count = quantizer.scales().numel();
  TORCH_CHECK(0 <= axis && axis < tensor.dim(), "Channel axis out of range in per channel affine ", what,
              ". Got: ", axis, " Expected: [0, ", tensor.dim(), ")");
  TORCH_CHECK(tensor.size(axis) == count, "length of scales must equal to channel, expected ", tensor.size(axis),
              " got, ", count);
}

at::Tensor quantize_per_tensor(const at::Tensor& self, double scale, int64_t zero_point, c10::ScalarType dtype) {
  constexpr Operator kQuantize{op::quantize_per_tensor::name};
  const OperandDeviceGuard device(kQuantize, self);
  check_numbers(self);
  at::Tensor result = make_quantized(self.sizes(), {}, self.suggest_memory_format(), dtype,
                                     at::make_per_tensor_affine_quantizer(scale, zero_point, dtype));
  check_zero_point(zero_point, dtype);
  launch(kQuantize, device, &quantize_per_tensor_kernel, self, scale, zero_point, result);
  return result;
}

at::Tensor quantize_per_tensor_by_tensors(const at::Tensor& self, const at::Tensor& scale, const at::Tensor& zero_point,
                                          c10::ScalarType dtype) {
  return quantize_per_tensor(self, scale.item().toDouble(), zero_point.item().toLong(), dtype);
}

std::vector<at::Tensor> quantize_each(at::TensorList tensors, const at::Tensor& scales, const at::Tensor& zero_points,
                                      c10::ScalarType dtype) {
  return at::native::quantize_per_tensor_list_cpu(tensors, scales.cpu(), zero_points.cpu(), dtype);
}

// The launch is synchronous if zero points are integers, because the kernel throws if the dtype cannot represent one.
at::Tensor quantize_per_channel(const at::Tensor& self, const at::Tensor& scales, const at::Tensor& zero_points,
                                int64_t axis, c10::ScalarType dtype) {
  constexpr Operator kQuantize{op::quantize_per_channel::name};
  const OperandDeviceGuard device(kQuantize, self, scales, zero_points);
  at::QuantizerPtr quantizer = at::make_per_channel_affine_quantizer(scales, zero_points, axis, dtype);
  const auto& parameters = static_cast<const at::PerChannelAffineQuantizer&>(*quantizer);
  const at::Tensor used_scales = parameters.scales();
  const at::Tensor used_zero_points = parameters.zero_points();
  const bool by_floats = used_zero_points.is_floating_point();
  check_numbers(self);
  require_dtype(by_floats || !is_below_byte(dtype), "quantize_tensor_per_channel_affine", dtype);
  check_channels(self, parameters, "quantization");
  const c10::MemoryFormat format = by_floats ? c10::MemoryFormat::Contiguous : self.suggest_memory_format();
  at::Tensor result = make_quantized(self.sizes(), {}, format, dtype, std::move(quantizer));
  launch(kQuantize, device, by_floats ? SyncPolicy::kAsync : SyncPolicy::kSyncUnlessCapturing,
         &quantize_per_channel_kernel, self, used_scales, used_zero_points, axis, result);
  return result;
}

// Does what PyTorch's CPU function does: it only converts to half. Blocks to read the smallest and the largest number
// from the device otherwise.
at::Tensor quantize_per_tensor_dynamic(const at::Tensor& self, c10::ScalarType dtype, bool reduce_range) {
  TORCH_CHECK(dtype == at::kQInt8 || dtype == at::kQUInt8 || dtype == at::kHalf, "dtype ", dtype, "not supported");
  if (dtype == at::kHalf) {
    return self.contiguous().to(at::kHalf);
  }
  const auto smallest = self.min().item<float>();
  const auto largest = self.max().item<float>();
  const bool reduces = reduce_range && at::globalContext().qEngine() != at::QEngine::QNNPACK;
  const bool is_signed = dtype == at::kQInt8;
  const auto chosen = quant_utils::ChooseQuantizationParams(smallest, largest, /*qmin=*/is_signed ? -128 : 0,
                                                            /*qmax=*/is_signed ? 127 : 255, /*preserve_sparsity=*/false,
                                                            /*force_scale_power_of_two=*/false, reduces);
  return quantize_per_tensor(self, chosen.scale, chosen.zero_point, dtype);
}

// The launch is synchronous if a per-channel quantizer has integer zero points, because PyTorch's kernel checks them.
at::Tensor dequantize(const at::Tensor& self) {
  constexpr Operator kDequantize{op::dequantize_self::name};
  const OperandDeviceGuard device(kDequantize, self);
  const at::QuantizerPtr quantizer = quantizer_of(self);
  if (const auto* per_channel = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get())) {
    check_channels(self, *per_channel, "dequantization");
  }
  const bool by_floats = quantizer->qscheme() == c10::kPerChannelAffineFloatQParams;
  const c10::MemoryFormat format = by_floats ? c10::MemoryFormat::Contiguous : self.suggest_memory_format();
  at::Tensor result = make_output(self.sizes(), {}, c10::TensorOptions().dtype(at::kFloat).memory_format(format));
  const bool kernel_checks_zero_points = quantizer->qscheme() == c10::kPerChannelAffine;
  launch(kDequantize, device, kernel_checks_zero_points ? SyncPolicy::kSyncUnlessCapturing : SyncPolicy::kAsync,
         &dequantize_kernel, self, result);
  return result;
}

at::Tensor int_repr(const at::Tensor& self) {
  const at::Tensor integers = integers_of(self);
  if (!is_below_byte(self.scalar_type())) {
    return integers.clone(self.suggest_memory_format());
  }
  const int64_t per_byte = self.scalar_type() == at::kQUInt4x2 ? 2 : 4;
  return integers.slice(0, 0, (self.numel() + per_byte - 1) / per_byte).clone();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::dequantize_self>(library, at::native::dequantize_cpu_or_cuda);
  function<op::quantize_per_channel>(library, quantize_per_channel);
  function<op::quantize_per_tensor>(library, quantize_per_tensor);
  function<op::quantize_per_tensor_dynamic>(library, quantize_per_tensor_dynamic);
  function<op::quantize_per_tensor_tensor_qparams>(library, quantize_per_tensor_by_tensors);
  function<op::quantize_per_tensor_tensors>(library, quantize_each);
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard quantized(c10::DispatchKey::QuantizedPrivateUse1);
  function<op::dequantize_self>(library, dequantize);
  function<op::int_repr>(library, int_repr);
  // These need no launch, because quantizers are on the host. The tensors of a per-channel quantizer are returned
  // unchanged.
  host_composite<kQuantized>(library, {"dequantize.tensors", "q_per_channel_axis", "q_per_channel_scales",
                                       "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme"});
}

}  // namespace

}  // namespace openreg::ops
