// SPDX-License-Identifier: BSD-3-Clause
// Determines which operators compute with the values of their operands. Only for these, a read of bytes that nothing
// has written is an error. Operators that only select or move elements, such as indexing, copies, gather, flip or
// where, may touch bytes whose values the program never uses: padding, or the unused rest of a cache.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace openreg::sanitizer {

// The operators that compute with values. The caller holds the sanitizer's mutex.
class OperatorUses {
 public:
  // Reads the operators with the tag `pointwise` from PyTorch's dispatcher, once: they compute with all elements.
  void learn();

  // Returns true if the kernel `name`, as "aten::add", computes with the values of its operand number `index`, which it
  // reads. `is_updated`: the kernel writes the operand, too. Only in-place operators compute with such an operand;
  // others overwrite it.
  bool uses_content(std::string_view name, bool is_updated, size_t index) const;

 private:
  std::unordered_set<std::string> pointwise_;
};

}  // namespace openreg::sanitizer
