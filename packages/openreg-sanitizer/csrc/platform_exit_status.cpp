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

void end(int status) {
  if (has_failed() && status == 0) {
    std::fflush(nullptr);
    std::_Exit(kFailed);
  }
}

}  // namespace

void register_exit_handler() {
#if defined(__GLIBC__)
  on_exit([](int status, void* /*argument*/) { end(status); }, nullptr);
#else
  std::atexit([] { end(0); });
#endif
}

void fail_at_exit() noexcept {
  has_failed() = true;
}

}  // namespace openreg::sanitizer
