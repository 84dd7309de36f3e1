// SPDX-License-Identifier: BSD-3-Clause
// EngineThreads owns the threads that execute tasks: one for each engine, and a timer thread, which ends the delays of
// streams (orStreamDelay()). A host thread that waits for a short copy can execute it in the place of an engine's
// thread.
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

// The threads of the engines and of the timer. They start before the first task and cannot be restarted after stop().
// The caller of start(), pause() and resume() holds the scheduler's mutex; the caller of stop() does not.
class EngineThreads {
 public:
  // `mutex` is the scheduler's mutex. `client` selects and executes the tasks; it is the TaskRunner. If `one_engine` is
  // true, only the compute engine has a thread, and there is no timer thread, as a seeded schedule
  // (OPENREG_SCHEDULE_SEED) requires.
  EngineThreads(std::mutex& mutex, Engines& engines, TimerQueue& timer_queue, EngineClient& client, bool one_engine)
      : mutex_(mutex), engines_(engines), timer_queue_(timer_queue), client_(client), one_engine_(one_engine) {}
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  // Starts the threads, unless they run already. Must be called before a task is enqueued. Throws
  // Error(orErrorDeinitialized) after stop(), and Error(orErrorUnknown) if the system starts no further thread.
  void start() {
    if (!running_) [[unlikely]] {
      start_threads();
    }
  }
  // Blocks until no engine executes a task. No engine begins another task before resume(). Releases the mutex while it
  // blocks. Throws Error(orErrorNotSupported) on an engine thread.
  void pause(Lock& lock);
  // Ends one pause(). Pauses of several threads may overlap; engines continue after the last resume().
  void resume();
  // Returns true between pause() and resume().
  bool is_paused() const { return pauses_ > 0; }
  // Returns true if a host thread may call run_on_caller() now: the engine is not paused, and has nothing to do.
  bool is_free(const Engine& engine) const { return pauses_ == 0 && !engine.is_running() && engine.ready().empty(); }
  // Executes and completes the stream's head, a copy, on the calling host thread in the place of the engine's own,
  // which begins no task meanwhile. Releases the mutex while the copy is executed.
  void run_on_caller(Engine& engine, Stream& stream, Lock& lock);
  // Ends and joins the threads. Each first completes the task that it executes. Locks the mutex.
  void stop();

 private:
  void start_threads();
  void start_engine(EngineIndex index);
  void run_engine(Engine& engine);
  void run_task(Engine& engine, Stream& stream, Lock& lock);
  void run_timer();

  std::mutex& mutex_;
  Engines& engines_;
  TimerQueue& timer_queue_;
  EngineClient& client_;
  const bool one_engine_;
  std::array<std::thread, kEngineCount> threads_;
  std::thread timer_;
  std::condition_variable paused_;  // notified when a task was executed while pauses_ > 0
  int pauses_ = 0;                  // number of pause() calls without their resume()
  bool running_ = false;            // true between start() and stop()
  bool stopping_ = false;           // true from stop() on
};

}  // namespace openreg::driver
