// SPDX-License-Identifier: BSD-3-Clause
// Tensors that are written to and share memory, with themselves as expanded tensors do, or with an operand.
//
// The CPU's kernels refuse some of them. They would do so on the engine, where an exception costs the device, so it is
// found out on the host.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string_view>

#include "support/device_check.h"

namespace openreg::ops {

// Warns, in PyTorch's words, of an operator that will refuse such a tensor one day; `indexing` calls it, too.
inline void warn_if_expanded(const char* name, const at::Tensor& self, const char* indexing) {
  if (C10_UNLIKELY(at::has_internal_overlap(self) == at::MemOverlap::Yes)) {
    TORCH_WARN("Use of ", name, " on expanded tensors is deprecated. Please clone() the tensor before performing this ",
               "operation. This also applies to advanced indexing e.g. ", indexing);
  }
}

// Throws c10::Error where an out= tensor that is an operand, too, would get other sizes: the kernel would find an
// operand of these, and not its values. PyTorch computes something from what lies there; its iterators refuse it, in
// the words that this begins with.
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

// What the kernel of a structured operator refuses of its outputs where PyTorch's meta function does not.
struct OverlapRule {
  enum class Operands { kAllowed, kPartOfFirst, kRefused };

  bool refuses_itself = false;
  Operands operands = Operands::kAllowed;

  constexpr bool refuses() const { return refuses_itself || operands != Operands::kAllowed; }
};

constexpr OverlapRule kNotItself{true, OverlapRule::Operands::kAllowed};
constexpr OverlapRule kNoPart{false, OverlapRule::Operands::kPartOfFirst};
constexpr OverlapRule kNotItselfNoPart{true, OverlapRule::Operands::kPartOfFirst};
constexpr OverlapRule kNoOperand{true, OverlapRule::Operands::kRefused};

// Throws c10::Error, in PyTorch's words, where an output and the operands are what the rule refuses.
template <class First, class... Rest>
void check_overlap_rule(const OverlapRule& rule, const at::Tensor& out, const First& first, const Rest&... rest) {
  if (rule.refuses_itself) {
    at::assert_no_internal_overlap(out);
  }
  if (rule.operands == OverlapRule::Operands::kPartOfFirst) {
    // It is copied to the output; one of fewer elements is expanded, which PyTorch does not look into.
    const auto copied = [&](const at::Tensor& operand) {
      if (operand.numel() == out.numel()) {
        at::assert_no_partial_overlap(out.squeeze(), operand.squeeze());
      }
    };
    for_each_tensor(copied, first);
  } else if (rule.operands == OverlapRule::Operands::kRefused) {
    const auto read = [&](const at::Tensor& operand) { at::assert_no_overlap(out, operand); };
    for_each_tensor(read, first);
    (for_each_tensor(read, rest), ...);
  }
}

}  // namespace openreg::ops
