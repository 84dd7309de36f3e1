// SPDX-License-Identifier: BSD-3-Clause
#include "operator_watch.h"

namespace openreg::sanitizer {

void OperatorWatch::start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_running()) {
    handle_ = at::addGlobalCallback(callback_);
  }
}

void OperatorWatch::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_running()) {
    at::removeCallback(handle_);
    handle_ = at::INVALID_CALLBACK_HANDLE;
  }
}

}  // namespace openreg::sanitizer
