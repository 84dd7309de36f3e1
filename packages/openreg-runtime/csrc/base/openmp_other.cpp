// SPDX-License-Identifier: BSD-3-Clause
// Where PyTorch's OpenMP is LLVM's or Microsoft's, which let threads spin whatever their number.
#include "openreg/runtime/host_wait.h"

namespace openreg::runtime {

void release_openmp_threads() noexcept {}

}  // namespace openreg::runtime
