// SPDX-License-Identifier: BSD-3-Clause
// Does nothing, for LLVM's and Microsoft's OpenMP: their threads spin even if more exist than cores.
#include "openreg/runtime/host_wait.h"

namespace openreg::runtime {

void release_openmp_threads() noexcept {}

}  // namespace openreg::runtime
