// SPDX-License-Identifier: BSD-3-Clause
// The threads that work queues off: one per engine, and the timer that ends delays.
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

// Starts with the first work and never restarts. start(), pause() and resume() are called with the scheduler's mutex
// held, stop() without it.
class EngineThreads {
 public:
  // `one_engine`: only the compute engine ever runs anything, and there are no delays to wait for.
  EngineThreads(std::mutex& mutex, Engines& engines, TimerQueue& timer_queue, EngineClient& client, bool one_engine)
      : mutex_(mutex), engines_(engines), timer_queue_(timer_queue), client_(client), one_engine_(one_engine) {}
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  // To be called before anything is enqueued. Throws Error(orErrorDeinitialized) after stop().
  void start() {
    if (!running_) [[unlikely]] {
      start_threads();
    }
  }
  // Waits until no engine works, and lets none begin anything before resume(). Throws Error(orErrorNotSupported) when
  // called by a kernel.
  void pause(Lock& lock);
  void resume();
  // Ends the threads after what they are running.
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
  std::condition_variable paused_;  // notified while pauses_ > 0, when an engine is done
  int pauses_ = 0;                  // calls of pause() without their resume()
  bool running_ = false;
  bool stopping_ = false;
};

}  // namespace openreg::driver
