// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

#include "progress/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

namespace openreg::distributed::platform {

void kill_this_process() noexcept {
  TerminateProcess(GetCurrentProcess(), 9);
  std::_Exit(9);  // Not reached.
}

bool threads_run_during_exit() noexcept {
  return false;
}

}  // namespace openreg::distributed::platform
