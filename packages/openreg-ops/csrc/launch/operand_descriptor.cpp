// SPDX-License-Identifier: BSD-3-Clause
#include "launch/operand_record.h"

#include <array>

#include "support/quantized.h"
#include "support/sparse_members.h"

namespace openreg::ops {

struct OperandRecord::Sparse final : Other {
  Sparse(const at::Tensor& operand, runtime::Aliases& aliases) : shape(operand) {
    const SparseMembers tensors = contiguous_members_of(operand);
    for (size_t i = 0; i < tensors.size(); ++i) {
      members[i] = aliases.record(tensors[i]);
    }
  }

  at::Tensor& open(runtime::AliasStorages& storages) override {
    const SparseMembers opened{members[0].open(storages), members[1].open(storages), members[2].open(storages)};
    check_places(shape, opened);  // in each run, as the bytes may be others
    alias = assemble(shape, opened);
    return alias;
  }

  SparseShape shape;
  std::array<runtime::AliasRecord, 3> members;
  at::Tensor alias;
};

struct OperandRecord::Quantized final : Other {
  Quantized(const at::Tensor& operand, runtime::Aliases& aliases)
      : integers(aliases.record(operand)), quantizer(operand, aliases) {}

  at::Tensor& open(runtime::AliasStorages& storages) override {
    if (!alias.defined()) {
      alias = with_quantizer(integers.open(storages), quantizer.open(storages));
    }
    return alias;
  }

  runtime::AliasRecord integers;
  QuantizerRecord quantizer;
  at::Tensor alias;
};

std::unique_ptr<OperandRecord::Other> OperandRecord::record_other(const at::Tensor& operand,
                                                                  runtime::Aliases& aliases) {
  if (operand.is_quantized()) {
    return std::make_unique<Quantized>(operand, aliases);
  }
  if (is_sparse(operand)) {
    return std::make_unique<Sparse>(operand, aliases);
  }
  aliases.record(operand);  // throws: no kernel takes the layout
  return nullptr;
}

}  // namespace openreg::ops
