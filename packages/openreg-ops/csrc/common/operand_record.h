// SPDX-License-Identifier: BSD-3-Clause
// What the alias of any operand is made from: runtime::AliasRecord for tensors of strided layout, and one for each
// member of a sparse one. Kernels then get a sparse tensor of the CPU over the same bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>

#include "common/sparse_members.h"
#include "openreg/runtime/alias.h"

namespace openreg::ops {

// As runtime::AliasRecord: made on the host, opened on the engine, once for each run of the launch.
class OperandRecord {
 public:
  OperandRecord() = default;
  OperandRecord(const at::Tensor& operand, runtime::Aliases& aliases)
      : dense_(is_sparse(operand) ? runtime::AliasRecord() : aliases.record(operand)),
        sparse_(is_sparse(operand) ? std::make_unique<Sparse>(operand, aliases) : nullptr) {}

  // The alias. Throws c10::Error where a sparse one has an index outside of it (check_places()).
  at::Tensor& open(runtime::AliasStorages& storages) {
    return sparse_ == nullptr ? dense_.open(storages) : sparse_->open(storages);
  }

 private:
  struct Sparse {
    Sparse(const at::Tensor& operand, runtime::Aliases& aliases);
    at::Tensor& open(runtime::AliasStorages& storages);

    SparseShape shape;
    std::array<runtime::AliasRecord, 3> members;
    at::Tensor alias;
  };

  runtime::AliasRecord dense_;
  std::unique_ptr<Sparse> sparse_;
};

}  // namespace openreg::ops
