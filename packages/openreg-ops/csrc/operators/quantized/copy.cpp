// SPDX-License-Identifier: BSD-3-Clause
// Copies of quantized tensors, whose integers are copied as those of dense tensors, and other operators that only move
// or compare integers.
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/quantize_per_channel.h>
#include <ATen/ops/quantize_per_tensor.h>

#include "registration/declare.h"
#include "support/quantized.h"

namespace openreg::ops {

namespace {

constexpr const char* kCopyFrom = "aten::_copy_from";

// Quantizes numbers into a quantized tensor, which keeps its quantizer.
void quantize_into(const at::Tensor& numbers, const at::Tensor& destination) {
  TORCH_CHECK(numbers.scalar_type() == at::kFloat, "Quantized copy only works with kFloat as source Tensor");
  TORCH_CHECK(destination.sizes().equals(numbers.sizes()),
              "Quantized copy only works with Tensors with the same shape");
  TORCH_CHECK((destination.is_contiguous() && numbers.is_contiguous()) ||
                  (destination.is_contiguous(at::MemoryFormat::ChannelsLast) &&
                   numbers.is_contiguous(at::MemoryFormat::ChannelsLast)),
              "Quantized copy only works with contiguous and NHWC Tensors");
  const at::QuantizerPtr quantizer = quantizer_of(destination);
  const at::Tensor here = numbers.to(destination.device());
  if (const auto* per_tensor = dynamic_cast<const at::PerTensorAffineQuantizer*>(quantizer.get())) {
    destination.copy_(
        at::quantize_per_tensor(here, per_tensor->scale(), per_tensor->zero_point(), destination.scalar_type()));
  } else if (const auto* per_channel = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get())) {
    destination.copy_(at::quantize_per_channel(here, per_channel->scales(), per_channel->zero_points(),
                                               per_channel->axis(), destination.scalar_type()));
    at::set_quantizer_(destination, quantizer);
  } else {
    TORCH_CHECK(false, "Quantized copy needs a quantized tensor with a known scale as its destination");
  }
}

bool is_whole(const at::Tensor& tensor) {
  return tensor.is_contiguous() && tensor.storage_offset() == 0 &&
         tensor.storage().nbytes() == bytes_of(tensor.sizes(), tensor.scalar_type());
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  TORCH_CHECK(dst.is_quantized(),
              "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a "
              "float Tensor from a quantized Tensor");
  if (!self.is_quantized()) {
    quantize_into(self, dst);
    return dst;
  }
  const at::QuantizerPtr quantizer = quantizer_of(self);
  TORCH_CHECK(quantizer->qscheme() == quantizer_of(dst)->qscheme(), "Quantized Copy only works with same qscheme");
  TORCH_CHECK(self.scalar_type() == dst.scalar_type(), "Quantized copy only works with the same dtype, got ",
              self.scalar_type(), " and ", dst.scalar_type());
  at::Tensor source = integers_of(self);
  if (is_below_byte(self.scalar_type())) {
    TORCH_CHECK(self.sizes() == dst.sizes() && is_whole(self) && is_whole(dst), kCopyFrom, ": tensors of ",
                self.scalar_type(), " can only be copied as a whole; copy the tensor, not a view of it");
  } else if (self.sizes() != dst.sizes()) {
    source = source.expand(dst.sizes());
  }
  at::set_quantizer_(dst, quantizer_on(quantizer, dst.device()));
  at::_copy_from(source, integers_of(dst), non_blocking);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

// Makes the tensor dense first, because PyTorch's function leaves the copy of any other tensor on the source's device.
at::Tensor to_copy(const at::Tensor& self, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                   std::optional<c10::Device> device, std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<c10::MemoryFormat> format) {
  const at::Tensor source = self.is_non_overlapping_and_dense() ? self : self.contiguous();
  return at::native::_to_copy(source, dtype, layout, device, pin_memory, non_blocking, format);
}

bool equal_quantized(const at::Tensor& self, const at::Tensor& other) {
  check_same_device("aten::equal", self.device(), other);
  return self.is_quantized() && other.is_quantized() && quantizer_of(self)->equalTo(quantizer_of(other)) &&
         self.sizes() == other.sizes() && self.element_size() == other.element_size() &&
         at::equal(integers_of(self), integers_of(other));
}

void record_quantized_stream(at::Tensor& self, c10::Stream stream) {
  const at::QuantizerPtr quantizer = quantizer_of(self);
  if (const auto* per_channel = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get())) {
    per_channel->scales().record_stream(stream);
    per_channel->zero_points().record_stream(stream);
  }
  integers_of(self).record_stream(stream);
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) {
  const RegistrationKeyGuard quantized(c10::DispatchKey::QuantizedPrivateUse1);
  function<op::_copy_from>(library, copy_from);
  function<op::_copy_from_and_resize>(library, copy_from_and_resize);
  function<op::_to_copy>(library, to_copy);
  function<op::equal>(library, equal_quantized);
  function<op::record_stream>(library, record_quantized_stream);
}

}  // namespace

}  // namespace openreg::ops
