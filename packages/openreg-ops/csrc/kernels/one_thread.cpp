// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/one_thread.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace openreg::ops::kernels {

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

}  // namespace openreg::ops::kernels
