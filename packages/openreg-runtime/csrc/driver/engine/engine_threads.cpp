// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the engines are in the device, and the driver only handles its interrupts.
#include "engine/engine_threads.h"

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/steady_time.h"
#include "engine/execute.h"
#include "platform/platform.h"

namespace openreg::driver {

namespace {

// Starts a thread. `purpose` is for the error message.
template <class Function>
std::thread start_thread(const char* purpose, Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    throw Error(orErrorUnknown, join("the system does not start the thread ", purpose, " (", error.code().message(),
                                     "); raise the limit of threads (`ulimit -u`, or `pids.max` of the control group), "
                                     "or end other programs"));
  }
}

}  // namespace

void EngineThreads::start_threads() {
  OPENREG_DRIVER_CHECK(!stopping_, orErrorDeinitialized,
                       "the process is exiting and the device has stopped; finish its work before the process exits");
  start_engine(kCompute);
  if (!one_engine_) {
    start_engine(kCopy);
    timer_ = start_thread("that ends delays", [this] { run_timer(); });
  }
  running_ = true;
}

// Does nothing if the engine's thread runs already, because start_threads() may be called again after the system has
// failed to start another thread.
void EngineThreads::start_engine(EngineIndex index) {
  if (!threads_[index].joinable()) {
    threads_[index] = start_thread(index == kCompute ? "of the compute engine" : "of the copy engine",
                                   [this, index] { run_engine(engines_[index]); });
  }
}

void EngineThreads::pause(Lock& lock) {
  check_not_engine_thread();
  ++pauses_;
  paused_.wait(lock, [this] { return !engines_.any_running(); });
}

void EngineThreads::resume() {
  if (--pauses_ == 0) {
    engines_.wake_all();
  }
}

void EngineThreads::stop() {
  {
    const Lock lock = acquire(mutex_);
    stopping_ = true;
    running_ = false;
    engines_.stop_all();
    timer_queue_.interrupt();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  if (timer_.joinable()) {
    timer_.join();
  }
}

void EngineThreads::run_on_caller(Engine& engine, Stream& stream, Lock& lock) {
  run_task(engine, stream, lock);
  if (!engine.ready().empty()) {
    engine.wake();  // its thread was woken meanwhile, and found the engine in use
  }
}

void EngineThreads::run_task(Engine& engine, Stream& stream, Lock& lock) {
  client_.run(engine, stream, lock);
  if (pauses_ > 0) {
    paused_.notify_all();
  }
}

void EngineThreads::run_engine(Engine& engine) {
  platform::name_thread(engine.index() == kCompute ? "openreg_compute" : "openreg_copy");
  is_engine_thread() = true;
  Lock lock = acquire(mutex_);
  while (!stopping_) {
    Stream* stream = pauses_ > 0 || engine.is_running() ? nullptr : client_.next(engine);
    if (stream == nullptr) {
      engine.found_nothing();
      engine.spin(lock);
      // During a pause, next() is not called again before resume() wakes this thread.
      engine.sleep(lock, pauses_ > 0 ? 0 : client_.longest_sleep());
      continue;
    }
    run_task(engine, *stream, lock);
  }
}

void EngineThreads::run_timer() {
  platform::name_thread("openreg_timer");
  Lock lock = acquire(mutex_);
  while (!stopping_) {
    if (timer_queue_.is_empty()) {
      timer_queue_.wait(lock);
    } else if (timer_queue_.earliest() > now()) {
      timer_queue_.wait_until(timer_queue_.earliest(), lock);
    } else {
      client_.end_delay(timer_queue_.take());
    }
  }
}

}  // namespace openreg::driver
