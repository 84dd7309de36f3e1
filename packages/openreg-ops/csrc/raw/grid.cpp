// SPDX-License-Identifier: BSD-3-Clause
// The one place where own kernels meet PyTorch: its pool of threads, because a second pool beside it would slow both.
// Compiled with OpenMP where PyTorch uses it (see CMakeLists.txt); without, a kernel runs on the engine's thread alone.
#include "raw/grid.h"

#include <ATen/Parallel.h>

namespace openreg::ops::raw {

void run_grid(int64_t count, int64_t grain, void* context, void (*body)(void* context, int64_t begin, int64_t end)) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); });
}

}  // namespace openreg::ops::raw
