// SPDX-License-Identifier: BSD-3-Clause
// The threads that execute tasks: one per engine, and the timer thread, which ends delays.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/lock.h"
#include "engine/engine_client.h"
#include "engine/engines.h"
#include "time/timer_queue.h"

namespace openreg::driver {

// The threads of the engines and the timer, which start with the first task and never restart. The caller of start(),
// pause() and resume() holds the scheduler's mutex; the caller of stop() does not.
class EngineThreads {
 public:
  // With `one_engine`, only the compute engine executes tasks, and no timer thread exists.
  EngineThreads(std::mutex& mutex, Engines& engines, TimerQueue& timer_queue, EngineClient& client, bool one_engine)
      : mutex_(mutex), engines_(engines), timer_queue_(timer_queue), client_(client), one_engine_(one_engine) {}
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  // Starts the threads unless they run. Must be called before a task is enqueued. Throws Error(orErrorDeinitialized)
  // after stop().
  void start() {
    if (!running_) [[unlikely]] {
      start_threads();
    }
  }
  // Blocks until no engine executes a task; none starts another before resume(). Releases the mutex while it blocks.
  // Throws Error(orErrorNotSupported) on an engine thread.
  void pause(Lock& lock);
  // Reverts one call of pause().
  void resume();
  // Ends and joins the threads after the tasks that they execute.
  void stop();

 private:
  void start_threads();
  void start_engine(EngineIndex index);
  void run_engine(Engine& engine);
  void run_timer();

  std::mutex& mutex_;
  Engines& engines_;
  TimerQueue& timer_queue_;
  EngineClient& client_;
  const bool one_engine_;
  std::array<std::thread, kEngineCount> threads_;
  std::thread timer_;
  std::condition_variable paused_;  // notified when an engine has executed a task while pauses_ > 0
  int pauses_ = 0;                  // calls of pause() without their resume()
  bool running_ = false;
  bool stopping_ = false;
};

}  // namespace openreg::driver
