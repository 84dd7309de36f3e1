// SPDX-License-Identifier: BSD-3-Clause
// Engine is a unit of the simulated hardware that executes tasks, such as a GPU's compute or copy engine. It consists
// of a queue of ready streams, the current task, and the means by which the thread that serves it sleeps and wakes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>

#include "base/lock.h"
#include "base/spin_limit.h"
#include "engine/ready_queue.h"
#include "objects/device.h"
#include "objects/stream.h"
#include "openreg.h"

namespace openreg::driver {

// The engines, and their number.
enum EngineIndex { kCompute, kCopy, kEngineCount };

// An engine without its thread: EngineThreads owns the thread that serves it, which calls spin() and sleep(). A stream
// is ready if its head (its oldest task that is not complete) can be executed now. Guarded by the scheduler's mutex,
// except has_work_.
class Engine {
 public:
  explicit Engine(EngineIndex index) : index_(index) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EngineIndex index() const { return index_; }
  const char* name() const { return index_ == kCompute ? "compute" : "copy"; }
  ReadyQueue& ready() { return ready_; }
  const ReadyQueue& ready() const { return ready_; }

  // Adds a stream, whose head this engine then executes, and wakes the engine.
  void make_ready(Stream& stream) {
    ready_.push(stream);
    wake();
  }
  // Wakes the thread, which sleeps again if it finds no task.
  void wake() {
    has_work_.store(true, std::memory_order_relaxed);
    if (sleeping_) {
      work_.notify_one();
    }
  }
  // Records that the thread has found no task. Must be called before spin().
  void found_nothing() { has_work_.store(false, std::memory_order_relaxed); }
  // Wakes the thread, which then never sleeps again. Called to end it.
  void stop();
  bool is_stopped() const { return stopped_; }

  // Polls for wake() or stop(), for as long as SpinLimit says. Releases the mutex meanwhile.
  void spin(Lock& lock);
  // Blocks until wake() or stop() was called, but for at most `longest` nanoseconds, where 0 means no limit. Returns at
  // once if wake() was called since found_nothing(). Releases the mutex while it blocks.
  void sleep(Lock& lock, uint64_t longest);

  // Records that the execution of the stream's head begins. Returns the current time, in nanoseconds of the steady
  // clock.
  uint64_t begin(const Stream& stream);
  // Records that the execution ends, and sets `time` to the current time, in nanoseconds of the steady clock. Returns
  // the duration, in nanoseconds.
  uint64_t end(uint64_t& time);

  // Return true if the engine executes a task, a task of the stream, or a task of the device.
  bool is_running() const { return running_ != nullptr; }
  bool is_running(const Stream& stream) const { return running_ == &stream; }
  bool is_running(const Device& device) const { return running_device_ == &device; }
  // Returns the result of the newest begin().
  uint64_t running_since() const { return running_since_; }
  // Returns the counters for orEngineGetStats(), with the task in execution up to now.
  orEngineStats stats() const;

 private:
  const EngineIndex index_;
  ReadyQueue ready_;
  std::condition_variable work_;
  bool sleeping_ = false;
  bool stopped_ = false;
  std::atomic<bool> has_work_{false};  // true if there may be a task; atomic, because spin() holds no mutex
  const Stream* running_ = nullptr;    // the stream whose head it executes since `running_since_`; null while idle
  const Device* running_device_ = nullptr;
  uint64_t running_since_ = 0;
  uint64_t tasks_ = 0;
  uint64_t busy_nanoseconds_ = 0;
  SpinLimit spin_limit_;
};

}  // namespace openreg::driver
