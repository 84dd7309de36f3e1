// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a tensor in memory, exactly: two interleaved columns of a matrix do not overlap, although the ranges
// from their first byte to their last do.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace openreg::sanitizer {

// Dtype, sizes and strides of a tensor. Strides are in elements.
struct Layout {
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // Undefined: bytes without a tensor
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  // Returns true if the tensor occupies each byte from its first to its last.
  bool is_dense() const;
};

// Layouts by number. Programs have few, so that a number stands for the sizes and strides of each access. Number 0 is
// bytes without gaps. A program whose shapes vary without end gets number 0 for dense tensors after the first 65536
// layouts, and for all after a million: the table is bounded. The caller holds the sanitizer's mutex.
class LayoutTable {
 public:
  LayoutTable() { layouts_.push_back({{}, {}, true}); }
  uint32_t intern(Layout layout);
  const Layout& layout(uint32_t number) const { return layouts_[number].layout; }
  bool is_dense(uint32_t number) const { return layouts_[number].dense; }

  // Returns true if the tensors at two ranges [begin, end) share a byte.
  bool overlap(uintptr_t begin, uintptr_t end, uint32_t layout, uintptr_t other_begin, uintptr_t other_end,
               uint32_t other_layout) const;
  // Calls `visit(begin, end)` with each range without gaps that the tensor occupies, in any order, until it returns
  // false. Returns false, without a call, if there are more than `limit` of them.
  bool visit_runs(uintptr_t begin, uintptr_t end, uint32_t layout, size_t limit,
                  c10::function_ref<bool(uintptr_t, uintptr_t)> visit) const;

 private:
  // One dimension in bytes: `count` copies of what the inner dimensions occupy, `stride` apart.
  struct Axis {
    int64_t count;
    int64_t stride;
    int64_t extent;  // bytes from the first to the last byte of one copy
  };
  struct Entry {
    Layout layout;
    std::vector<Axis> axes;  // the largest stride first
    bool dense;
    int64_t run = 0;  // bytes without a gap inside the axes
  };
  static bool touches(const Entry& entry, size_t axis, int64_t from, int64_t begin, int64_t end);

  std::vector<Entry> layouts_;
  std::map<std::tuple<c10::ScalarType, std::vector<int64_t>, std::vector<int64_t>>, uint32_t> numbers_;
};

}  // namespace openreg::sanitizer
