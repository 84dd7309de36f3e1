// SPDX-License-Identifier: BSD-3-Clause
// Quantised tensors as the parameters of kernels that launch() launches (declare/launch.h): the kernel gets one on the
// CPU, with its quantiser, where at::Tensor parameters get the integers.
#pragma once

#include "common/arguments.h"
#include "common/quantized.h"

namespace openreg::ops {

struct QuantizedInput {
  at::Tensor tensor;
};

// The kernel writes its integers.
struct QuantizedOutput {
  at::Tensor tensor;
};

template <class Visit>
void for_each_tensor(Visit&& visit, const QuantizedInput& operand) {
  for_each_tensor(visit, operand.tensor);
}
template <class Visit>
void for_each_tensor(Visit&& visit, const QuantizedOutput& operand) {
  for_each_tensor(visit, operand.tensor);
}

template <>
struct Owned<QuantizedInput> {
  Owned(const QuantizedInput& value, runtime::Aliases& aliases) : record(value.tensor, aliases) {}
  QuantizedInput get(runtime::AliasStorages& storages) { return {record.open(storages)}; }
  OperandRecord record;
};

template <>
struct Owned<QuantizedOutput> {
  Owned(const QuantizedOutput& value, runtime::Aliases& aliases) : record(value.tensor, aliases) {}
  QuantizedOutput get(runtime::AliasStorages& storages) { return {record.open(storages)}; }
  OperandRecord record;
};

}  // namespace openreg::ops
