// SPDX-License-Identifier: BSD-3-Clause
// Which operators compute with the values of their operands, so that memory that nothing wrote is an error there.
//
// Operators that only select or move elements, such as indexing, copies, gather, flip or where, may touch bytes that
// the program never uses: padding, or the unused rest of a cache. They are no error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace openreg::sanitizer {

// The caller holds the sanitizer's mutex.
class OperatorUses {
 public:
  // Reads PyTorch's table of operators: those with the tag `pointwise` compute with all elements.
  void learn();

  // Returns true if the kernel `name`, as "aten::add", uses the values of its operand number `index`, which it reads.
  // `is_updated`: the operand is written, too, which only updates in place use.
  bool uses_content(std::string_view name, bool is_updated, size_t index) const;

 private:
  std::unordered_set<std::string> pointwise_;
};

}  // namespace openreg::sanitizer
