// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace openreg::sanitizer {

namespace {

constexpr size_t kLimit = size_t{1} << 20;  // runs that a comparison visits at most
constexpr size_t kDenseLayouts = size_t{1} << 16;
constexpr size_t kLayouts = size_t{1} << 20;

int64_t item_size(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Undefined ? 1 : static_cast<int64_t>(c10::elementSize(dtype));
}

// Returns (stride, size) of each dimension of more than one element, the smallest stride first.
std::vector<std::pair<int64_t, int64_t>> sorted_dims(const Layout& layout) {
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

bool Layout::is_dense() const {
  int64_t run = 1;
  for (const auto& [stride, size] : sorted_dims(*this)) {
    if (stride > run) {
      return false;
    }
    run += stride * (size - 1);
  }
  return true;
}

uint32_t LayoutTable::intern(Layout layout) {
  auto key = std::make_tuple(layout.dtype, layout.sizes, layout.strides);
  const auto found = numbers_.find(key);
  if (found != numbers_.end()) {
    return found->second;
  }
  if (layouts_.size() >= kLayouts || (layouts_.size() >= kDenseLayouts && layout.is_dense())) {
    return 0;
  }
  Entry entry;
  const int64_t item = item_size(layout.dtype);
  entry.run = item;
  int64_t extent = item;
  bool inner = true;
  for (const auto& [stride, size] : sorted_dims(layout)) {
    const int64_t bytes = stride * item;
    if (inner && bytes <= entry.run) {
      entry.run += bytes * (size - 1);
      extent = entry.run;
      continue;
    }
    inner = false;
    entry.axes.push_back({size, bytes, extent});
    extent += bytes * (size - 1);
  }
  std::reverse(entry.axes.begin(), entry.axes.end());
  entry.dense = entry.axes.empty();
  entry.layout = std::move(layout);
  const auto number = static_cast<uint32_t>(layouts_.size());
  layouts_.push_back(std::move(entry));
  numbers_.emplace(std::move(key), number);
  return number;
}

// Returns true if what the axes from `axis` on occupy, beginning at offset `from`, has a byte in [begin, end).
bool LayoutTable::touches(const Entry& entry, size_t axis, int64_t from, int64_t begin, int64_t end) {
  if (axis == entry.axes.size()) {
    return from < end && from + entry.run > begin;
  }
  const Axis& dim = entry.axes[axis];
  // The copies i with from + i * stride < end and from + i * stride + extent > begin.
  const int64_t low = begin - from - dim.extent;
  const int64_t first = low < 0 ? 0 : low / dim.stride + 1;
  const int64_t high = end - from;
  const int64_t last = high <= 0 ? -1 : std::min(dim.count - 1, (high - 1) / dim.stride);
  // A copy in the middle lies in the range as a whole, unless copies overlap each other.
  for (int64_t i = first; i <= last; ++i) {
    if (touches(entry, axis + 1, from + i * dim.stride, begin, end)) {
      return true;
    }
  }
  return false;
}

bool LayoutTable::visit_runs(uintptr_t begin, uintptr_t end, uint32_t layout, size_t limit,
                             c10::function_ref<bool(uintptr_t, uintptr_t)> visit) const {
  const Entry& entry = layouts_[layout];
  if (entry.dense) {
    visit(begin, end);
    return true;
  }
  size_t runs = 1;
  for (const Axis& axis : entry.axes) {
    if (runs > limit) {
      return false;
    }
    runs *= static_cast<size_t>(axis.count);
  }
  if (runs > limit) {
    return false;
  }
  std::vector<int64_t> index(entry.axes.size(), 0);
  for (size_t run = 0; run < runs; ++run) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      offset += index[i] * entry.axes[i].stride;
    }
    const uintptr_t from = begin + static_cast<uintptr_t>(offset);
    if (!visit(from, from + static_cast<uintptr_t>(entry.run))) {
      return true;
    }
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < entry.axes[i].count) {
        break;
      }
      index[i] = 0;
    }
  }
  return true;
}

bool LayoutTable::overlap(uintptr_t begin, uintptr_t end, uint32_t layout, uintptr_t other_begin, uintptr_t other_end,
                          uint32_t other_layout) const {
  if (begin >= other_end || other_begin >= end) {
    return false;
  }
  if (is_dense(layout) && is_dense(other_layout)) {
    return true;
  }
  const auto runs = [](const Entry& entry) {
    return std::accumulate(entry.axes.begin(), entry.axes.end(), 1.0,
                           [](double product, const Axis& axis) { return product * static_cast<double>(axis.count); });
  };
  if (runs(layouts_[layout]) > runs(layouts_[other_layout])) {
    std::swap(begin, other_begin);
    std::swap(end, other_end);
    std::swap(layout, other_layout);
  }
  const Entry& other = layouts_[other_layout];
  bool shares = false;
  const bool visited = visit_runs(begin, end, layout, kLimit, [&](uintptr_t from, uintptr_t to) {
    shares = from < other_end && to > other_begin &&
             (other.dense || touches(other, 0, 0, static_cast<int64_t>(from) - static_cast<int64_t>(other_begin),
                                     static_cast<int64_t>(to) - static_cast<int64_t>(other_begin)));
    return !shares;
  });
  return visited && shares;
}

}  // namespace openreg::sanitizer
