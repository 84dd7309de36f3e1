// SPDX-License-Identifier: BSD-3-Clause
#include "launch/operand_descriptor.h"

#include <array>

#include "support/quantized.h"
#include "support/sparse_components.h"

namespace openreg::ops {

struct OperandDescriptor::Sparse final : Other {
  Sparse(const at::Tensor& operand, runtime::AliasBuilder& aliases) : shape(operand) {
    const SparseComponents tensors = contiguous_components_of(operand);
    for (size_t i = 0; i < tensors.size(); ++i) {
      components[i] = aliases.describe(tensors[i]);
      aliases.keep(tensors[i]);  // it may be a temporary copy
    }
  }

  at::Tensor& make_tensor(runtime::AliasStorages& storages) override {
    const SparseComponents made{components[0].make_tensor(storages), components[1].make_tensor(storages),
                                components[2].make_tensor(storages)};
    check_sparse_invariants(shape, made);  // in each execution, because the bytes may have changed
    alias = assemble(shape, made);
    return alias;
  }

  SparseShape shape;
  std::array<runtime::AliasDescriptor, 3> components;
  at::Tensor alias;
};

struct OperandDescriptor::Quantized final : Other {
  Quantized(const at::Tensor& operand, runtime::AliasBuilder& aliases)
      : integers(aliases.describe(operand)), quantizer(operand, aliases) {}

  at::Tensor& make_tensor(runtime::AliasStorages& storages) override {
    if (!alias.defined()) {
      alias = with_quantizer(integers.make_tensor(storages), quantizer.make_quantizer(storages));
    }
    return alias;
  }

  runtime::AliasDescriptor integers;
  QuantizerDescriptor quantizer;
  at::Tensor alias;
};

std::unique_ptr<OperandDescriptor::Other> OperandDescriptor::describe_other(const at::Tensor& operand,
                                                                            runtime::AliasBuilder& aliases) {
  if (operand.is_quantized()) {
    return std::make_unique<Quantized>(operand, aliases);
  }
  if (is_sparse(operand)) {
    return std::make_unique<Sparse>(operand, aliases);
  }
  aliases.describe(operand);  // throws, because no kernel supports the layout
  return nullptr;
}

}  // namespace openreg::ops
