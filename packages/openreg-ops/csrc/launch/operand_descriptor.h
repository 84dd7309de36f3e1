// SPDX-License-Identifier: BSD-3-Clause
// What the alias of any operand is made from: runtime::AliasRecord for tensors of strided layout, one for each member
// of a sparse one, and a quantiser beside that of quantised integers. Kernels then get a sparse or quantised tensor of
// the CPU over the same bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// As runtime::AliasRecord: made on the host, opened on the engine, once for each run of the launch.
class OperandRecord {
 public:
  OperandRecord(const at::Tensor& operand, runtime::Aliases& aliases) {
    if (C10_LIKELY(is_plain(operand))) {
      dense_ = aliases.record(operand);
    } else {
      other_ = record_other(operand, aliases);
    }
  }

  // The alias. Throws c10::Error where a sparse one has an index outside of it (check_places()).
  at::Tensor& open(runtime::AliasStorages& storages) {
    return C10_LIKELY(other_ == nullptr) ? dense_.open(storages) : other_->open(storages);
  }

 private:
  struct Other {
    virtual ~Other() = default;
    virtual at::Tensor& open(runtime::AliasStorages& storages) = 0;
  };
  struct Sparse;
  struct Quantized;

  static bool is_plain(const at::Tensor& operand) {
    return !operand.defined() || (operand.layout() == c10::kStrided && !operand.is_quantized());
  }
  static std::unique_ptr<Other> record_other(const at::Tensor& operand, runtime::Aliases& aliases);

  runtime::AliasRecord dense_;
  std::unique_ptr<Other> other_;
};

}  // namespace openreg::ops
