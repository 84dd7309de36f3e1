// SPDX-License-Identifier: BSD-3-Clause
// This file implements the operating system services of Windows, except those for memory, which are in
// platform_windows_memory.cpp.
#include "platform/platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

namespace openreg::driver::platform {

size_t page_size() {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
}

size_t usable_memory() {
  MEMORYSTATUSEX status;
  status.dwLength = sizeof(status);
  GlobalMemoryStatusEx(&status);
  return static_cast<size_t>(status.ullTotalPhys);
}

void around_fork(void (* /*before*/)(), void (* /*in_parent*/)(), void (* /*in_child*/)()) {}

bool threads_run_during_exit() {
  return false;  // ExitProcess ends all other threads before the handlers of a library run
}

void name_thread(const char* /*name*/) {
  // Does nothing, because SetThreadDescription is missing from older systems and only helps debuggers.
}

void relax() {
  for (int i = 0; i < 4; ++i) {
    YieldProcessor();
  }
}

}  // namespace openreg::driver::platform
