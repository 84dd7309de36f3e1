// SPDX-License-Identifier: BSD-3-Clause
// Observes the operators that PyTorch's dispatcher calls, through a callback of at::RecordFunction.
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <mutex>

namespace openreg::sanitizer {

// A callback of at::RecordFunction for the operators of all threads, which can be added and removed repeatedly. While
// it is added, each operator costs a call of it. Thread-safe.
class OperatorWatch {
 public:
  explicit OperatorWatch(at::RecordFunctionCallback callback) : callback_(callback) {
    callback_.scopes({at::RecordScope::FUNCTION});
  }

  // Adds the callback, unless it is added already.
  void start();
  // Removes the callback, unless it is removed already.
  void stop();
  bool is_running() const noexcept { return handle_ != at::INVALID_CALLBACK_HANDLE; }

 private:
  at::RecordFunctionCallback callback_;
  std::mutex mutex_;  // serializes start() and stop()
  std::atomic<at::CallbackHandle> handle_{at::INVALID_CALLBACK_HANDLE};
};

}  // namespace openreg::sanitizer
