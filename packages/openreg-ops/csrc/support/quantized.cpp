// SPDX-License-Identifier: BSD-3-Clause
#include "support/quantized.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_empty_affine_quantized.h>
#include <c10/core/ScalarType.h>

#include <utility>

#include "openreg/runtime/allocator.h"
#include "openreg/runtime/device.h"

namespace openreg::ops {

namespace {

constexpr c10::DispatchKeySet kDense(c10::DispatchKey::PrivateUse1);
constexpr c10::DispatchKeySet kQuantizedHere(c10::DispatchKey::QuantizedPrivateUse1);
constexpr c10::DispatchKeySet kQuantizedCpu(c10::DispatchKey::QuantizedCPU);

at::QuantizerPtr per_channel(c10::ScalarType dtype, at::Tensor scales, at::Tensor zero_points, int64_t axis) {
  if (zero_points.is_floating_point()) {
    return c10::make_intrusive<at::PerChannelAffineFloatQParamsQuantizer>(dtype, std::move(scales),
                                                                          std::move(zero_points), axis);
  }
  return c10::make_intrusive<at::PerChannelAffineQuantizer>(dtype, std::move(scales), std::move(zero_points), axis);
}

// Makes PyTorch warn that quantized tensors are deprecated. PyTorch warns once per process, when it makes the first one
// on the CPU. A kernel would make that one on an engine thread, which drops warnings.
void warn_of_deprecation() {
  static const bool has_warned = [] {
    at::_empty_affine_quantized({0}, at::TensorOptions(at::kCPU).dtype(at::kQInt8), 1, 0);
    return true;
  }();
  static_cast<void>(has_warned);
}

}  // namespace

at::QuantizerPtr quantizer_of(const at::Tensor& tensor) {
  return at::get_qtensorimpl(tensor)->quantizer();
}

at::QuantizerPtr quantizer_on(const at::QuantizerPtr& quantizer, c10::Device device) {
  const auto* found = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (found == nullptr || found->scales().device() == device) {
    return quantizer;
  }
  return per_channel(quantizer->scalar_type(), found->scales().to(device), found->zero_points().to(device),
                     found->axis());
}

bool is_below_byte(c10::ScalarType dtype) {
  return dtype == at::kQUInt4x2 || dtype == at::kQUInt2x4;
}

size_t bytes_of(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  if (!is_below_byte(dtype) || sizes.empty()) {
    return at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(dtype));
  }
  const size_t per_byte = dtype == at::kQUInt4x2 ? 2 : 4;
  const size_t row = (static_cast<size_t>(sizes.back()) + per_byte - 1) / per_byte;
  return at::detail::computeStorageNbytesContiguous(sizes.slice(0, sizes.size() - 1), 1) * row;
}

at::Tensor make_quantized(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::MemoryFormat format,
                          c10::ScalarType dtype, at::QuantizerPtr quantizer) {
  at::detail::check_size_nonnegative(sizes);
  TORCH_CHECK(c10::isQIntType(dtype), "ScalarType ", dtype,
              " is not supported for a quantized tensor on openreg; give torch.quint8, torch.qint8, torch.qint32, "
              "torch.quint4x2 or torch.quint2x4");
  warn_of_deprecation();
  const auto bytes = static_cast<int64_t>(bytes_of(sizes, dtype));
  const at::Tensor memory =
      at::detail::empty_generic({bytes}, &runtime::device_allocator(), kDense, at::kByte, std::nullopt);
  at::Tensor result = at::detail::make_tensor<at::QTensorImpl>(c10::Storage(memory.storage()), kQuantizedHere,
                                                               c10::scalarTypeToTypeMeta(dtype), std::move(quantizer));
  c10::TensorImpl& impl = *result.unsafeGetTensorImpl();
  if (strides.empty()) {
    impl.set_sizes_contiguous(sizes);
    impl.empty_tensor_restride(format);
  } else {
    impl.set_sizes_and_strides(sizes, strides);
  }
  return result;
}

at::Tensor integers_of(const at::Tensor& quantized) {
  const c10::ScalarType dtype = quantized.scalar_type();
  const c10::DispatchKeySet keys = quantized.device().is_cpu() ? c10::DispatchKeySet(c10::DispatchKey::CPU) : kDense;
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(quantized.storage()), keys,
                                                               c10::scalarTypeToTypeMeta(c10::toUnderlying(dtype)));
  c10::TensorImpl& impl = *result.unsafeGetTensorImpl();
  if (is_below_byte(dtype)) {
    impl.set_sizes_contiguous({static_cast<int64_t>(quantized.storage().nbytes())});
  } else {
    impl.set_sizes_and_strides(quantized.sizes(), quantized.strides(), quantized.storage_offset());
  }
  return result;
}

QuantizerDescriptor::QuantizerDescriptor(const at::Tensor& quantized, runtime::AliasBuilder& aliases)
    : dtype_(quantized.scalar_type()) {
  const at::QuantizerPtr quantizer = quantizer_of(quantized);
  if (const auto* per_tensor = dynamic_cast<const at::PerTensorAffineQuantizer*>(quantizer.get())) {
    scheme_ = per_tensor->qscheme();
    scale_ = per_tensor->scale();
    zero_point_ = per_tensor->zero_point();
  } else if (const auto* found = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get())) {
    scheme_ = found->qscheme();
    axis_ = found->axis();
    aliases.as(orAccessRead);  // the kernel only reads them, also if it writes the integers
    scales_ = aliases.describe(found->scales());
    zero_points_ = aliases.describe(found->zero_points());
  }
}

at::QuantizerPtr QuantizerDescriptor::make_quantizer(runtime::AliasStorages& storages) {
  if (scheme_ == kUnknownScheme) {
    return at::make_unknown_quantizer(dtype_);
  }
  if (scheme_ == c10::kPerTensorAffine) {
    return at::make_per_tensor_affine_quantizer(scale_, zero_point_, dtype_);
  }
  return per_channel(dtype_, scales_.make_tensor(storages), zero_points_.make_tensor(storages), axis_);
}

at::Tensor with_quantizer(const at::Tensor& integers, at::QuantizerPtr quantizer) {
  at::Tensor result = at::detail::make_tensor<at::QTensorImpl>(c10::Storage(integers.storage()), kQuantizedCpu,
                                                               integers.dtype(), std::move(quantizer));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(integers.sizes(), integers.strides(), integers.storage_offset());
  return result;
}

at::Tensor quantized_alias(const at::Tensor& tensor, runtime::AliasBuilder& aliases) {
  const at::Tensor alias = aliases(tensor);
  const at::QuantizerPtr quantizer = quantizer_of(tensor);
  const auto* found = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get());
  if (found == nullptr) {
    return with_quantizer(alias, quantizer);
  }
  aliases.as(orAccessRead);
  return with_quantizer(alias, per_channel(quantizer->scalar_type(), aliases(found->scales()),
                                           aliases(found->zero_points()), found->axis()));
}

}  // namespace openreg::ops
