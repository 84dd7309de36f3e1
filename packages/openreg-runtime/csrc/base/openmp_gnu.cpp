// SPDX-License-Identifier: BSD-3-Clause
// Threads of GNU OpenMP, which PyTorch for Linux brings along.
#include "openreg/runtime/host_wait.h"

// Of OpenMP 5.0, section 3.2.44. Weak: found in the library that PyTorch loaded, whatever its file is called, and null
// where that is older. Linking an OpenMP of our own would end the threads of another copy.
extern "C" int omp_pause_resource_all(int kind) __attribute__((weak));

namespace openreg::runtime {

void release_openmp_threads() noexcept {
  constexpr int kSoft = 1;  // omp_pause_soft: settings are kept
  if (omp_pause_resource_all != nullptr) {
    omp_pause_resource_all(kSoft);
  }
}

}  // namespace openreg::runtime
