// SPDX-License-Identifier: BSD-3-Clause
// Operating system services of macOS.
#include "platform.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysctl.h>

namespace openreg::driver::platform {

size_t usable_memory() {
  uint64_t bytes = 0;
  size_t length = sizeof(bytes);
  if (sysctlbyname("hw.memsize", &bytes, &length, nullptr, 0) != 0) {
    return size_t{4} << 30;  // the smallest machine that PyTorch supports
  }
  return static_cast<size_t>(bytes);
}

void decommit(void* address, size_t size) noexcept {
  // Unlike MADV_FREE, mapping afresh gives the memory back at once, so that statistics of the process are true.
  mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void name_thread(const char* name) {
  pthread_setname_np(name);
}

}  // namespace openreg::driver::platform
