// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace openreg::distributed {

// A pool of threads that wait for calls of the transport (the c10d backend that moves bytes between ranks, Gloo) whose
// c10d::Work has no future. It has as many threads as calls are waited for at the same time, because with fewer threads
// a call that completes late would delay the others. Thread-safe.
class WaitThreadPool {
 public:
  WaitThreadPool() = default;
  WaitThreadPool(const WaitThreadPool&) = delete;
  WaitThreadPool& operator=(const WaitThreadPool&) = delete;
  ~WaitThreadPool();

  // Makes each thread end when its wait and the queued ones are over. Does not block.
  void close();

  // Takes `wait`, which must not throw, and calls it on an idle thread or on a new one. Returns false, and leaves
  // `wait` to the caller, if a new thread is needed and the system cannot create one.
  bool run(std::function<void()>& wait);

 private:
  // Starts a thread that takes elements of the queue until the pool is closed.
  void start_thread();

  // The state that the pool and its threads share, because a thread may outlive the pool.
  struct WaitPoolState {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    size_t idle = 0;  // The number of threads that wait for an element of `queue`.
    bool closed = false;
  };
  const std::shared_ptr<WaitPoolState> state_ = std::make_shared<WaitPoolState>();
};

}  // namespace openreg::distributed
