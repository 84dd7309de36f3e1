// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace openreg::distributed {

// The owner of all threads of this library. A thread that has ended is joined when the next one is started, or when the
// process exits. No thread is detached. Thread-safe.
//
// join() has a time limit: a thread may wait for a device, and the device for a rank that has exited.
class Threads {
 public:
  // Returns the one instance. It is never destroyed, because a thread may outlive the destructors of statics.
  static Threads& instance();

  // Calls `body` on a new thread and destroys it there. `body` must not throw. Throws std::system_error if the system
  // cannot create a thread.
  void start(std::function<void()> body);
  // Joins all threads. Returns false if some still run when `limit` is over; this object keeps them.
  bool join(std::chrono::milliseconds limit);

 private:
  struct OwnedThread {
    std::thread handle;
    bool has_ended = false;
  };

  Threads() = default;
  // Joins the threads that have ended. The caller holds `mutex_`.
  void join_ended();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::list<OwnedThread> threads_;
};

}  // namespace openreg::distributed
