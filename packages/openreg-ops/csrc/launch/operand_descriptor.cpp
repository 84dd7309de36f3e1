// SPDX-License-Identifier: BSD-3-Clause
#include "launch/operand_descriptor.h"

#include <array>

#include "support/quantized.h"
#include "support/sparse_components.h"

namespace openreg::ops {

struct OperandDescriptor::Sparse final : Other {
  Sparse(const at::Tensor& operand, runtime::Aliases& aliases) : shape(operand) {
    const SparseComponents tensors = contiguous_components_of(operand);
    for (size_t i = 0; i < tensors.size(); ++i) {
      components[i] = aliases.record(tensors[i]);
      aliases.keep(tensors[i]);  // it may be a temporary copy
    }
  }

  at::Tensor& open(runtime::AliasStorages& storages) override {
    const SparseComponents opened{components[0].open(storages), components[1].open(storages),
                                  components[2].open(storages)};
    check_sparse_invariants(shape, opened);  // in each execution, because the bytes may have changed
    alias = assemble(shape, opened);
    return alias;
  }

  SparseShape shape;
  std::array<runtime::AliasRecord, 3> components;
  at::Tensor alias;
};

struct OperandDescriptor::Quantized final : Other {
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

std::unique_ptr<OperandDescriptor::Other> OperandDescriptor::record_other(const at::Tensor& operand,
                                                                          runtime::Aliases& aliases) {
  if (operand.is_quantized()) {
    return std::make_unique<Quantized>(operand, aliases);
  }
  if (is_sparse(operand)) {
    return std::make_unique<Sparse>(operand, aliases);
  }
  aliases.record(operand);  // throws, because no kernel supports the layout
  return nullptr;
}

}  // namespace openreg::ops
