// SPDX-License-Identifier: BSD-3-Clause
// Parallel loops of kernels over independent items, on all OpenMP threads.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

namespace openreg::ops {

// Returns the number of items of `size` elements that together have about `elements` elements, at least one. `elements`
// is the least work for which another thread is worth its cost.
inline int64_t grain_of(int64_t elements, int64_t size) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(1, size));
}

// Calls `visit(i)` for each i in [0, count). `grain` is that of at::parallel_for(): the calling thread alone visits up
// to `grain` items. Rethrows an exception of `visit` on the calling thread.
template <class Visit>
void for_each_item(int64_t count, int64_t grain, const Visit& visit) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      visit(i);
    }
  });
}

}  // namespace openreg::ops
