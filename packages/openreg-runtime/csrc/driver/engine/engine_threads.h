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

// The threads of the engines and the timer. They start before the first task is enqueued, and after stop() they cannot
// start again. The caller of start(), pause() and resume() holds the scheduler's mutex; the caller of stop() does not.
class EngineThreads {
 public:
  // With `one_engine`, only the compute engine executes tasks, and no timer thread exists.
  EngineThreads(std::mutex& mutex, Engines& engines, TimerQueue& timer_queue, EngineClient& client, bool one_engine)
      : mutex_(mutex), engines_(engines), timer_queue_(timer_queue), client_(client), one_engine_(one_engine) {}
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  // Starts the threads if they do not run yet. Every call that enqueues a task calls this first. Throws
  // Error(orErrorDeinitialized) after stop().
  void start() {
    if (!running_) [[unlikely]] {
      start_threads();
    }
  }
  // Stops the engines from starting tasks, and blocks until none executes one. Releases the mutex while it blocks.
  // Throws Error(orErrorNotSupported) on an engine thread.
  void pause(Lock& lock);
  // Ends one call of pause(). The engines go on after as many calls as of pause().
  void resume();
  // Ends the threads, each after the task that it executes, and joins them.
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
