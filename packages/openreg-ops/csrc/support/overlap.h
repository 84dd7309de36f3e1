// SPDX-License-Identifier: BSD-3-Clause
// Checks of outputs that share memory with an operand, or whose own elements share memory (expanded tensors).
//
// The CPU's kernels reject some of these tensors. A kernel that throws on the engine thread causes a sticky error of
// the device, so the host checks before the launch.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string_view>

#include "support/device_check.h"

namespace openreg::ops {

// Warns, in PyTorch's words, that an operator will reject an expanded tensor in a later release. `indexing` is an
// example of an indexing expression that also calls the operator.
inline void warn_if_expanded(const char* name, const at::Tensor& self, const char* indexing) {
  if (C10_UNLIKELY(at::has_internal_overlap(self) == at::MemOverlap::Yes)) {
    TORCH_WARN("Use of ", name, " on expanded tensors is deprecated. Please clone() the tensor before performing this ",
               "operation. This also applies to advanced indexing e.g. ", indexing);
  }
}

// Throws c10::Error if an out= tensor is also an operand and would be resized. The resize would discard the operand's
// values before the kernel reads them. Without TensorIterator, PyTorch computes from undefined content in this case;
// TensorIterator throws an error that begins like this one.
template <class... Args>
void check_operands_keep_size(const at::Tensor& out, c10::IntArrayRef sizes, const Args&... args) {
  if (out.sizes() == sizes) {
    return;
  }
  const auto visit = [&](const at::Tensor& operand) {
    TORCH_CHECK(!operand.is_same(out),
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single ",
                "memory location. Please clone() the tensor before performing the operation.\n",
                "The out= tensor of shape ", out.sizes(), " is an operand, too, and would be resized to ", sizes, ".");
  };
  (for_each_tensor(visit, args), ...);
}

// Overlaps of outputs that the kernel of a structured operator rejects and PyTorch's meta function does not.
struct OverlapRule {
  // The overlap of an output with operands: any is allowed, a partial one with the first operand is rejected, or any is
  // rejected.
  enum class OperandOverlap { kAllowed, kPartOfFirst, kRejected };

  bool rejects_itself = false;  // true: two elements of the output must not share memory
  OperandOverlap operands = OperandOverlap::kAllowed;

  constexpr bool rejects() const { return rejects_itself || operands != OperandOverlap::kAllowed; }
};

// The rules of the kernels: the overlaps that a kernel rejects.
constexpr OverlapRule kNotItself{true, OverlapRule::OperandOverlap::kAllowed};            // of the output with itself
constexpr OverlapRule kNoPart{false, OverlapRule::OperandOverlap::kPartOfFirst};          // partial, with operand 1
constexpr OverlapRule kNotItselfNoPart{true, OverlapRule::OperandOverlap::kPartOfFirst};  // both of the above
constexpr OverlapRule kNoOperand{true, OverlapRule::OperandOverlap::kRejected};           // any, also with itself

// Throws c10::Error, in PyTorch's words, if an output has an overlap that `rule` rejects. `first` and `rest` are the
// operator's operands.
template <class First, class... Rest>
void check_overlap_rule(const OverlapRule& rule, const at::Tensor& out, const First& first, const Rest&... rest) {
  if (rule.rejects_itself) {
    at::assert_no_internal_overlap(out);
  }
  if (rule.operands == OverlapRule::OperandOverlap::kPartOfFirst) {
    // A kernel that copies the operand to the output expands one with fewer elements. PyTorch does not check the
    // overlap in that case, nor does this function.
    const auto copied = [&](const at::Tensor& operand) {
      if (operand.numel() == out.numel()) {
        at::assert_no_partial_overlap(out.squeeze(), operand.squeeze());
      }
    };
    for_each_tensor(copied, first);
  } else if (rule.operands == OverlapRule::OperandOverlap::kRejected) {
    const auto read = [&](const at::Tensor& operand) { at::assert_no_overlap(out, operand); };
    for_each_tensor(read, first);
    (for_each_tensor(read, rest), ...);
  }
}

}  // namespace openreg::ops
