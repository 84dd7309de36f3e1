// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/one_thread.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace openreg::ops::kernels {

#if defined(_OPENMP)
// Does not call at::set_num_threads(), because that also changes the default of threads that start later.
SingleThreadGuard::SingleThreadGuard() : before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
SingleThreadGuard::~SingleThreadGuard() {
  omp_set_num_threads(before_);
}
#else
SingleThreadGuard::SingleThreadGuard() : before_(0) {}
SingleThreadGuard::~SingleThreadGuard() = default;
#endif

}  // namespace openreg::ops::kernels
