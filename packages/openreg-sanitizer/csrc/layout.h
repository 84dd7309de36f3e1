// SPDX-License-Identifier: BSD-3-Clause
// The bytes that a strided tensor occupies, exactly: two interleaved columns of a matrix do not overlap, although the
// ranges from their first byte to their last do.
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
struct TensorLayout {
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // Undefined: bytes without a tensor
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

// The bytes of a tensor in memory.
struct TensorBytes {
  uintptr_t begin = 0;  // address of the first byte
  uintptr_t end = 0;    // address after the last byte
  uint32_t layout = 0;  // number in a LayoutTable
};

// A table of layouts by number, so that an access stores a number instead of sizes and strides. Number 0 stands for
// bytes without gaps. The table is bounded, for programs whose shapes vary without end: with 65536 layouts, further
// dense tensors get number 0, and with a million all further tensors do. The caller holds the sanitizer's mutex.
class LayoutTable {
 public:
  LayoutTable() : layouts_(1) {}
  // Returns the number of a layout, and adds the layout if it is new.
  uint32_t intern(TensorLayout layout);
  const TensorLayout& layout(uint32_t number) const { return layouts_[number].layout; }
  // Returns true if the tensor occupies each byte from its first to its last.
  bool is_dense(uint32_t number) const { return layouts_[number].is_dense(); }

  // Returns true if two tensors share a byte, and false if both consist of more than a million ranges without gaps.
  bool overlap(TensorBytes one, TensorBytes other) const;
  // Calls `visit(begin, end)` with each range without gaps that the tensor occupies, in any order, until it returns
  // false. Returns false, without a call, if there are more than `limit` of them.
  bool visit_runs(const TensorBytes& tensor, size_t limit, c10::function_ref<bool(uintptr_t, uintptr_t)> visit) const;

 private:
  // One dimension in bytes: `count` copies of the bytes of the inner dimensions, `stride` apart.
  struct StridedDim {
    int64_t count;
    int64_t stride;
    int64_t extent;  // bytes from the first to the last byte of one copy
  };
  // A layout and the runs that it consists of. A run is a range of bytes without gaps.
  struct InternedLayout {
    TensorLayout layout;
    std::vector<StridedDim> dims;  // the dimensions between the runs, the largest stride first
    int64_t run = 0;               // bytes of one run; unused if the layout is dense
    bool is_dense() const { return dims.empty(); }
  };
  static InternedLayout split_into_runs(TensorLayout layout);
  static bool touches(const InternedLayout& layout, size_t dim, int64_t from, int64_t begin, int64_t end);

  std::vector<InternedLayout> layouts_;
  std::map<std::tuple<c10::ScalarType, std::vector<int64_t>, std::vector<int64_t>>, uint32_t> numbers_;
};

}  // namespace openreg::sanitizer
