// SPDX-License-Identifier: BSD-3-Clause
// Does nothing, for LLVM's and Microsoft's OpenMP: their threads spin even if more exist than cores.
#include "base/openmp.h"
#include "openreg/runtime/host_wait.h"

namespace openreg::runtime {

void release_openmp_threads() noexcept {}

std::optional<CoreTime> core_time_of_thread() {
  return std::nullopt;
}

IdleOpenMpTeam::IdleOpenMpTeam(unsigned /*kernel_threads*/, std::chrono::milliseconds /*duration*/) {}

IdleOpenMpTeam::~IdleOpenMpTeam() = default;

}  // namespace openreg::runtime
