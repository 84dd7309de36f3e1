// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "exit_status.h"

namespace openreg::sanitizer {

namespace {

std::atomic<bool>& has_failed() noexcept {
  static std::atomic<bool> value{false};
  return value;
}

void replace_status(int status) {
  if (has_failed() && status == 0) {
    std::fflush(nullptr);
    std::_Exit(kExitStatusWithFindings);
  }
}

}  // namespace

void register_exit_handler() {
#if defined(__GLIBC__)
  on_exit([](int status, void* /*argument*/) { replace_status(status); }, nullptr);
#else
  std::atexit([] { replace_status(0); });
#endif
}

void fail_at_exit() noexcept {
  has_failed() = true;
}

}  // namespace openreg::sanitizer
