// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace openreg::sanitizer {

namespace {

constexpr size_t kMaxComparedRuns = size_t{1} << 20;  // of a comparison
constexpr size_t kMaxDenseLayouts = size_t{1} << 16;
constexpr size_t kMaxLayouts = size_t{1} << 20;

int64_t item_size(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Undefined ? 1 : static_cast<int64_t>(c10::elementSize(dtype));
}

// Returns (stride, size) of each dimension of more than one element, the smallest stride first.
std::vector<std::pair<int64_t, int64_t>> sorted_dims(const TensorLayout& layout) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] > 1 && layout.strides[i] != 0) {
      dims.emplace_back(layout.strides[i], layout.sizes[i]);
    }
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

}  // namespace

// The inner dimensions without gaps make the run, and all dimensions outside of them remain.
LayoutTable::InternedLayout LayoutTable::split_into_runs(TensorLayout layout) {
  InternedLayout result;
  const int64_t item = item_size(layout.dtype);
  result.run = item;
  int64_t extent = item;
  for (const auto& [stride, size] : sorted_dims(layout)) {
    const int64_t bytes = stride * item;
    if (result.dims.empty() && bytes <= result.run) {
      result.run += bytes * (size - 1);
      extent = result.run;
    } else {
      result.dims.push_back({size, bytes, extent});
      extent += bytes * (size - 1);
    }
  }
  std::reverse(result.dims.begin(), result.dims.end());
  result.layout = std::move(layout);
  return result;
}

uint32_t LayoutTable::intern(TensorLayout layout) {
  auto key = std::make_tuple(layout.dtype, layout.sizes, layout.strides);
  const auto found = numbers_.find(key);
  if (found != numbers_.end()) {
    return found->second;
  }
  if (layouts_.size() >= kMaxLayouts) {
    return 0;
  }
  InternedLayout interned = split_into_runs(std::move(layout));
  if (layouts_.size() >= kMaxDenseLayouts && interned.is_dense()) {
    return 0;
  }
  const auto number = static_cast<uint32_t>(layouts_.size());
  layouts_.push_back(std::move(interned));
  numbers_.emplace(std::move(key), number);
  return number;
}

// Returns true if the part of the tensor at offset `from` that has the dimensions from number `dim` on occupies a byte
// in [begin, end). Offsets are in bytes from the tensor's first one.
bool LayoutTable::touches(const InternedLayout& layout, size_t dim, int64_t from, int64_t begin, int64_t end) {
  if (dim == layout.dims.size()) {
    return from < end && from + layout.run > begin;
  }
  const auto& [count, stride, extent] = layout.dims[dim];
  // The copies i with from + i * stride < end and from + i * stride + extent > begin.
  const int64_t low = begin - from - extent;
  const int64_t first = low < 0 ? 0 : low / stride + 1;
  const int64_t high = end - from;
  const int64_t last = high <= 0 ? -1 : std::min(count - 1, (high - 1) / stride);
  // A copy in the middle lies in the range as a whole, unless copies overlap each other.
  for (int64_t i = first; i <= last; ++i) {
    if (touches(layout, dim + 1, from + i * stride, begin, end)) {
      return true;
    }
  }
  return false;
}

bool LayoutTable::visit_runs(const TensorBytes& tensor, size_t limit,
                             c10::function_ref<bool(uintptr_t, uintptr_t)> visit) const {
  const InternedLayout& layout = layouts_[tensor.layout];
  if (layout.is_dense()) {
    visit(tensor.begin, tensor.end);
    return true;
  }
  size_t runs = 1;
  for (const StridedDim& dim : layout.dims) {
    if (runs > limit) {  // before the product overflows
      return false;
    }
    runs *= static_cast<size_t>(dim.count);
  }
  if (runs > limit) {
    return false;
  }
  std::vector<int64_t> index(layout.dims.size(), 0);
  for (size_t run = 0; run < runs; ++run) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      offset += index[i] * layout.dims[i].stride;
    }
    const uintptr_t from = tensor.begin + static_cast<uintptr_t>(offset);
    if (!visit(from, from + static_cast<uintptr_t>(layout.run))) {
      return true;
    }
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < layout.dims[i].count) {
        break;
      }
      index[i] = 0;
    }
  }
  return true;
}

bool LayoutTable::overlap(TensorBytes one, TensorBytes other) const {
  if (one.begin >= other.end || other.begin >= one.end) {
    return false;
  }
  if (is_dense(one.layout) && is_dense(other.layout)) {
    return true;
  }
  const auto count_runs = [&](const TensorBytes& tensor) {
    const auto& dims = layouts_[tensor.layout].dims;
    return std::accumulate(dims.begin(), dims.end(), 1.0, [](double product, const StridedDim& dim) {
      return product * static_cast<double>(dim.count);
    });
  };
  if (count_runs(one) > count_runs(other)) {
    std::swap(one, other);
  }
  // The runs of the tensor that has fewer, each compared with the other tensor.
  const InternedLayout& layout = layouts_[other.layout];
  bool shares = false;
  const bool was_visited = visit_runs(one, kMaxComparedRuns, [&](uintptr_t begin, uintptr_t end) {
    shares =
        begin < other.end && end > other.begin &&
        (layout.is_dense() || touches(layout, 0, 0, static_cast<int64_t>(begin) - static_cast<int64_t>(other.begin),
                                      static_cast<int64_t>(end) - static_cast<int64_t>(other.begin)));
    return !shares;
  });
  return was_visited && shares;
}

}  // namespace openreg::sanitizer
