// SPDX-License-Identifier: BSD-3-Clause
// Loops of kernels over items that need nothing of each other, on all threads.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

namespace openreg::ops {

// How many items of `size` elements make up the work that is worth a thread, `elements`; at least one.
inline int64_t grain_of(int64_t elements, int64_t size) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, size));
}

// Calls `visit(i)` for each item from 0 up to `count`. A thread gets `grain` of them at least. An exception reaches the
// caller.
template <class Visit>
void for_each_item(int64_t count, int64_t grain, const Visit& visit) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      visit(i);
    }
  });
}

}  // namespace openreg::ops
