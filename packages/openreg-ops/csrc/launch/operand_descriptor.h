// SPDX-License-Identifier: BSD-3-Clause
// The descriptor of an operand of any layout, from which the operand's alias is made when the kernel runs: a strided,
// sparse or quantized CPU tensor over the operand's bytes. It consists of a runtime::AliasDescriptor for a strided
// tensor, of one for each component of a sparse tensor, and of one with a quantizer for a quantized tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// A descriptor, from which the alias of an operand is made, as with runtime::AliasDescriptor. The host makes the
// descriptor, and the thread that executes the kernel calls make_tensor() once in each execution.
class OperandDescriptor {
 public:
  OperandDescriptor(const at::Tensor& operand, runtime::AliasBuilder& aliases)
      : other_(C10_LIKELY(is_plain(operand)) ? nullptr : describe_other(operand, aliases)),
        dense_(other_ == nullptr ? aliases.describe(operand) : runtime::AliasDescriptor()) {}

  // Returns the alias. Throws c10::Error if an index of a sparse tensor is out of bounds (check_sparse_invariants()).
  at::Tensor& make_tensor(runtime::AliasStorages& storages) {
    return C10_LIKELY(other_ == nullptr) ? dense_.make_tensor(storages) : other_->make_tensor(storages);
  }

 private:
  struct Other {
    virtual ~Other() = default;
    virtual at::Tensor& make_tensor(runtime::AliasStorages& storages) = 0;
  };
  struct Sparse;
  struct Quantized;

  static bool is_plain(const at::Tensor& operand) {
    return !operand.defined() || (operand.layout() == c10::kStrided && !operand.is_quantized());
  }
  static std::unique_ptr<Other> describe_other(const at::Tensor& operand, runtime::AliasBuilder& aliases);

  std::unique_ptr<Other> other_;  // null for a strided tensor without a quantizer
  runtime::AliasDescriptor dense_;
};

}  // namespace openreg::ops
