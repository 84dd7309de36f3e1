// SPDX-License-Identifier: BSD-3-Clause
// Factories of quantized tensors, from integers and parameters. PyTorch's functions use an allocator that its
// quantization engine determines, which for one engine is the host's. So these functions allocate themselves.
#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/_empty_affine_quantized_native.h>
#include <ATen/ops/_empty_per_channel_affine_quantized.h>
#include <ATen/ops/_empty_per_channel_affine_quantized_native.h>

#include "registration/declare.h"
#include "registration/non_strided.h"
#include "support/quantized.h"

namespace openreg::ops {

namespace {

using MaybeDtype = std::optional<c10::ScalarType>;
using MaybeLayout = std::optional<c10::Layout>;
using MaybeDevice = std::optional<c10::Device>;
using MaybeFormat = std::optional<c10::MemoryFormat>;

at::Tensor empty_quantized(c10::IntArrayRef size, MaybeDtype dtype, MaybeLayout /*layout*/, MaybeDevice device,
                           std::optional<bool> pin_memory, MaybeFormat format) {
  const CurrentDeviceGuard current(factory_device("aten::empty", device, pin_memory));
  return make_quantized(size, {}, format.value_or(c10::MemoryFormat::Contiguous), *dtype,
                        at::make_unknown_quantizer(*dtype));
}

at::Tensor empty_affine(c10::IntArrayRef size, MaybeDtype dtype, MaybeLayout /*layout*/, MaybeDevice device,
                        std::optional<bool> pin_memory, double scale, int64_t zero_point, MaybeFormat format) {
  const CurrentDeviceGuard current(factory_device("aten::_empty_affine_quantized", device, pin_memory));
  return make_quantized(size, {}, format.value_or(c10::MemoryFormat::Contiguous), *dtype,
                        at::make_per_tensor_affine_quantizer(scale, zero_point, *dtype));
}

// Also makes tensors on the host: a copy from the device calls it for one, because the scales are on the device.
at::Tensor empty_per_channel(c10::IntArrayRef size, const at::Tensor& scales, const at::Tensor& zero_points,
                             int64_t axis, MaybeDtype dtype, MaybeLayout layout, MaybeDevice device,
                             std::optional<bool> pin_memory, MaybeFormat format) {
  if (!device.has_value() || device->type() != runtime::kDeviceType) {
    const c10::Device other = device.value_or(c10::kCPU);
    return at::_empty_per_channel_affine_quantized(size, scales.to(other), zero_points.to(other), axis, dtype, layout,
                                                   other, pin_memory, format);
  }
  const c10::Device here = factory_device("aten::_empty_per_channel_affine_quantized", device, pin_memory);
  const CurrentDeviceGuard current(here);
  at::QuantizerPtr quantizer =
      at::make_per_channel_affine_quantizer(scales.to(here), zero_points.to(here), axis, *dtype);
  return make_quantized(size, {}, format.value_or(c10::MemoryFormat::Contiguous), *dtype, std::move(quantizer));
}

at::Tensor make_per_tensor(const at::Tensor& self, double scale, int64_t zero_point) {
  at::Tensor result = at::_empty_affine_quantized(
      self.sizes(), self.options().dtype(c10::toQIntType(self.scalar_type())), scale, zero_point);
  integers_of(result).copy_(self);
  return result;
}

at::Tensor make_per_channel(const at::Tensor& self, const at::Tensor& scales, const at::Tensor& zero_points,
                            int64_t axis) {
  const c10::Device device = device_of("aten::_make_per_channel_quantized_tensor", self, scales, zero_points);
  check_same_device("aten::_make_per_channel_quantized_tensor", device, self, scales, zero_points);
  at::Tensor result = at::_empty_per_channel_affine_quantized(
      self.sizes(), scales, zero_points, axis, self.options().dtype(c10::toQIntType(self.scalar_type())));
  integers_of(result).copy_(self);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // PyTorch's functions throw its own errors for a dtype that is not quantized.
  function<op::_empty_affine_quantized>(library, at::native::empty_affine_quantized_other_backends_stub);
  function<op::_empty_per_channel_affine_quantized>(library,
                                                    at::native::empty_per_channel_affine_quantized_other_backends_stub);
  function<op::_make_per_tensor_quantized_tensor>(library, make_per_tensor);
  function<op::_make_per_channel_quantized_tensor>(library, make_per_channel);
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard quantized(c10::DispatchKey::QuantizedPrivateUse1);
  function<op::_empty_affine_quantized>(library, empty_affine);
  function<op::_empty_per_channel_affine_quantized>(library, empty_per_channel);
  function<op::empty_memory_format>(library, empty_quantized);
  // PyTorch's functions here call the factories above, except empty_strided: PyTorch has no strided factory, and
  // throws.
  host_composite<kQuantized>(library, {"clone", "empty_like", "empty_quantized", "empty_strided"});
}

}  // namespace

}  // namespace openreg::ops
