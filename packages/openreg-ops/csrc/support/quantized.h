// SPDX-License-Identifier: BSD-3-Clause
// Quantized tensors: integers in a storage, and the quantizer of at::QTensorImpl, which maps them to real numbers. A
// per-tensor quantizer has a scale and a zero point, which are numbers on the host. A per-channel quantizer has two
// tensors, which are on the device of the integers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// The scheme of a quantizer without parameters, such as that of torch.empty(2, dtype=torch.qint8).
constexpr auto kUnknownScheme = c10::QScheme::COMPILE_TIME_NUM_QSCHEMES;

// Returns the quantizer of a quantized tensor.
at::QuantizerPtr quantizer_of(const at::Tensor& tensor);

// Returns a quantizer with equal parameters for integers on `device`. Copies the tensors of a per-channel quantizer to
// that device, which blocks if they are on an openreg device and the copy goes to the host.
at::QuantizerPtr quantizer_on(const at::QuantizerPtr& quantizer, c10::Device device);

// Returns true if several elements share a byte, as for torch.quint4x2 and torch.quint2x4.
bool is_below_byte(c10::ScalarType dtype);

// Returns the size of a contiguous tensor, in bytes. If several elements share a byte, each row begins at a new byte.
size_t bytes_of(c10::IntArrayRef sizes, c10::ScalarType dtype);

// Returns a new quantized tensor on the current device with undefined content. Without `strides` it is contiguous in
// the memory format; otherwise they are those of a dense tensor. Throws c10::Error if the dtype is not quantized.
at::Tensor make_quantized(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::MemoryFormat format,
                          c10::ScalarType dtype, at::QuantizerPtr quantizer);

// Returns the integers as a dense tensor over the memory and on the device of `quantized`. If several elements share a
// byte, returns all bytes of the storage, in one dimension.
at::Tensor integers_of(const at::Tensor& quantized);

// A descriptor of a quantizer, from which the engine thread makes it. A launch must not own the tensors of a
// per-channel quantizer, because they may have Python objects.
class QuantizerDescriptor {
 public:
  // `quantized` is a tensor on an openreg device.
  QuantizerDescriptor(const at::Tensor& quantized, runtime::AliasBuilder& aliases);

  // Returns the quantizer. `storages` are those of AliasDescriptor::make_tensor().
  at::QuantizerPtr make_quantizer(runtime::AliasStorages& storages);

 private:
  c10::ScalarType dtype_;
  c10::QScheme scheme_ = kUnknownScheme;  // kUnknownScheme: a quantizer without parameters
  double scale_ = 0;
  int64_t zero_point_ = 0;
  int64_t axis_ = 0;
  runtime::AliasDescriptor scales_;
  runtime::AliasDescriptor zero_points_;
};

// Returns a quantized tensor over the memory of a CPU tensor of integers.
at::Tensor with_quantizer(const at::Tensor& integers, at::QuantizerPtr quantizer);

// Returns the alias of a quantized tensor: a quantized CPU tensor over its bytes. Makes the alias at once, without a
// descriptor.
at::Tensor quantized_alias(const at::Tensor& tensor, runtime::AliasBuilder& aliases);

}  // namespace openreg::ops
