// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of Windows.
#include "platform.h"

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

void* reserve_inaccessible(size_t size) {
  return VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS);
}

void* reserve_accessible(size_t size) {
  return VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_READWRITE);
}

bool commit(void* address, size_t size) noexcept {
  return VirtualAlloc(address, size, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

void decommit(void* address, size_t size) noexcept {
  VirtualFree(address, size, MEM_DECOMMIT);
}

void unreserve(void* address, size_t /*size*/) noexcept {
  VirtualFree(address, 0, MEM_RELEASE);
}

void* allocate_pages(size_t size) {
  return VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void free_pages(void* address, size_t /*size*/) noexcept {
  VirtualFree(address, 0, MEM_RELEASE);
}

void around_fork(void (* /*before*/)(), void (* /*in_parent*/)(), void (* /*in_child*/)()) {}

bool threads_run_during_exit() {
  return false;  // ExitProcess ends all other threads before the handlers of a library run
}

void name_thread(const char* /*name*/) {
  // SetThreadDescription is missing from older systems and only helps debuggers.
}

}  // namespace openreg::driver::platform
