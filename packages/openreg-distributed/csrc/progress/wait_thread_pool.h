// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace openreg::distributed {

// Threads that block on works of the transport, for calls without a future. The pool has as many threads as works were
// waited for at once, because with fewer a work that completes late would hide one that is complete. Thread-safe.
class WaitThreadPool {
 public:
  WaitThreadPool() = default;
  WaitThreadPool(const WaitThreadPool&) = delete;
  WaitThreadPool& operator=(const WaitThreadPool&) = delete;
  ~WaitThreadPool();

  // Makes each thread end when its wait is over. The threads own what they use.
  void close();

  // Calls `wait` on an idle thread or on a new one. `wait` must not throw.
  void run(std::function<void()> wait);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    size_t idle = 0;
    bool closed = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace openreg::distributed
