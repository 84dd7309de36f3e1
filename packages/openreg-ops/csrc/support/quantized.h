// SPDX-License-Identifier: BSD-3-Clause
// Quantised tensors: integers in a storage, and the quantiser of at::QTensorImpl, which says what numbers they stand
// for. Of a whole tensor it is a scale and a zero point, which the host knows; per channel it is two tensors, which lie
// on the device of the integers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// Of a quantiser without parameters, as that of torch.empty(2, dtype=torch.qint8).
constexpr auto kUnknownScheme = c10::QScheme::COMPILE_TIME_NUM_QSCHEMES;

// The quantiser of a quantised tensor.
at::QuantizerPtr quantizer_of(const at::Tensor& tensor);

// The same quantiser for integers on `device`: the tensors of one per channel are copied there, for which the host
// waits where they come from the device.
at::QuantizerPtr quantizer_on(const at::QuantizerPtr& quantizer, c10::Device device);

// Whether several numbers share a byte: torch.quint4x2 and torch.quint2x4.
bool is_below_byte(c10::ScalarType dtype);

// The bytes of a contiguous tensor; of a dtype below a byte, each row begins with a byte.
size_t bytes_of(c10::IntArrayRef sizes, c10::ScalarType dtype);

// A new quantised tensor on the current device; its content is undefined. Without strides it is contiguous in the
// memory format, and with them they are those of a dense tensor. Throws c10::Error for a dtype that is not quantised.
at::Tensor make_quantized(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::MemoryFormat format,
                          c10::ScalarType dtype, at::QuantizerPtr quantizer);

// The integers, as a dense tensor over the same memory, on the same device. Of a dtype below a byte, all bytes of the
// storage, in one dimension.
at::Tensor integers_of(const at::Tensor& quantized);

// What a quantiser is made from on the engine. A launch must not own the tensors of one per channel, for they may have
// Python objects.
class QuantizerRecord {
 public:
  // Of a tensor on the device.
  QuantizerRecord(const at::Tensor& quantized, runtime::Aliases& aliases);

  // `storages` as of AliasRecord::open().
  at::QuantizerPtr open(runtime::AliasStorages& storages);

 private:
  c10::ScalarType dtype_;
  c10::QScheme scheme_ = kUnknownScheme;  // of an unknown one
  double scale_ = 0;
  int64_t zero_point_ = 0;
  int64_t axis_ = 0;
  runtime::AliasRecord scales_;
  runtime::AliasRecord zero_points_;
};

// A tensor of integers on the CPU as a quantised one, over the same memory.
at::Tensor with_quantizer(const at::Tensor& integers, at::QuantizerPtr quantizer);

// The alias of a quantised tensor, made at once.
at::Tensor quantized_alias(const at::Tensor& tensor, runtime::Aliases& aliases);

}  // namespace openreg::ops
