// SPDX-License-Identifier: BSD-3-Clause
// A set of bytes, as ranges of addresses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace openreg::sanitizer {

// A set of addresses, as disjoint ranges [begin, end) in ascending order. Not thread-safe.
class ByteRanges {
 public:
  // Adds a range, and merges it with those that it overlaps or adjoins.
  void add(uintptr_t begin, uintptr_t end) {
    const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                        [](const auto& range, uintptr_t value) { return range.second < value; });
    auto last = first;
    while (last != ranges_.end() && last->first <= end) {
      begin = std::min(begin, last->first);
      end = std::max(end, last->second);
      ++last;
    }
    ranges_.emplace(ranges_.erase(first, last), begin, end);
  }

  // Returns true if the set contains each byte of a range that is not empty.
  bool contains(uintptr_t begin, uintptr_t end) const {
    const auto found = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                        [](const auto& range, uintptr_t value) { return range.second <= value; });
    return found != ranges_.end() && found->first <= begin && found->second >= end;
  }

  // Returns the number of ranges.
  size_t size() const { return ranges_.size(); }
  void clear() { ranges_.clear(); }

 private:
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges_;
};

}  // namespace openreg::sanitizer
