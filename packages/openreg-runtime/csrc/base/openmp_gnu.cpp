// SPDX-License-Identifier: BSD-3-Clause
// Releases threads of GNU OpenMP, which PyTorch for Linux contains.
#include "openreg/runtime/host_wait.h"

// A function of OpenMP 5.0, section 3.2.44. The symbol is weak, so that it resolves to the OpenMP library that PyTorch
// has loaded, whatever its file name, and is null if that library is older. A library that is linked here could be a
// second copy, which would end only its own threads.
extern "C" int omp_pause_resource_all(int kind) __attribute__((weak));

namespace openreg::runtime {

void release_openmp_threads() noexcept {
  constexpr int kSoft = 1;  // omp_pause_soft, which keeps settings
  if (omp_pause_resource_all != nullptr) {
    omp_pause_resource_all(kSoft);
  }
}

}  // namespace openreg::runtime
