// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace openreg::distributed {

// Owns every thread that this library starts. A thread that has ended is joined when the next one is started, and at
// the end of the process at the latest. None is detached. Thread-safe.
//
// Nobody joins a thread that still runs, without a limit: it may wait for a device that waits for a rank that is gone.
class Threads {
 public:
  // The owner of this process. It is never destroyed, because a thread may outlive the destructors of statics.
  static Threads& instance();

  // Calls `body` on a new thread and destroys it there. `body` must not throw. Throws std::system_error where the
  // system gives no thread.
  void start(std::function<void()> body);
  // Joins all threads; false if some still run when the limit is over. They stay with this object.
  bool join(std::chrono::milliseconds limit);

 private:
  struct Thread {
    std::thread handle;
    bool has_ended = false;
  };

  Threads() = default;
  // Joins those that have ended. The mutex is held.
  void join_ended();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::list<Thread> threads_;
};

}  // namespace openreg::distributed
