// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstdlib>

#include "exit_status.h"

namespace openreg::sanitizer {

namespace {

[[noreturn]] void fail() {
  std::fflush(nullptr);
  std::_Exit(kFailed);
}

}  // namespace

void fail_at_exit() {
#if defined(__GLIBC__)
  on_exit(
      [](int status, void* /*argument*/) {
        if (status == 0) {
          fail();
        }
      },
      nullptr);
#else
  std::atexit([] { fail(); });
#endif
}

}  // namespace openreg::sanitizer
