// SPDX-License-Identifier: BSD-3-Clause
// The one place where own kernels meet PyTorch: its pool of threads, because a second pool beside it would slow both.
// Compiled with OpenMP where PyTorch uses it (see CMakeLists.txt); without, a kernel runs on the engine's thread alone.
#include "raw/grid.h"

#include <ATen/Parallel.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace openreg::ops::raw {

void run_grid(int64_t count, int64_t grain, void* context, void (*body)(void* context, int64_t begin, int64_t end)) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); });
}

#if defined(_OPENMP)
// Not at::set_num_threads(), which is also the default of threads that start later.
OneThread::OneThread() : before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
OneThread::~OneThread() {
  omp_set_num_threads(before_);
}
#else
OneThread::OneThread() : before_(0) {}
OneThread::~OneThread() = default;
#endif

}  // namespace openreg::ops::raw
