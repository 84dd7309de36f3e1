// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace openreg::distributed {

// Threads that wait for a transport which tells the end of an operation only to who waits for it. There are as many as
// operations were waited for at once: were there fewer, one that ends late would hide one that has ended. Thread-safe.
class Waiters {
 public:
  Waiters() = default;
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;
  ~Waiters();

  // The threads end when what they wait for does. They own what they use.
  void close();

  // Calls `wait` on a thread that has nothing else to do. It must not throw.
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
