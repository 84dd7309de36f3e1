// SPDX-License-Identifier: BSD-3-Clause
// One engine as the scheduler sees it: its ready streams, its current task, and how its thread sleeps and wakes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>

#include "base/lock.h"
#include "engine/ready_queue.h"
#include "objects/device.h"
#include "objects/stream.h"
#include "openreg.h"

namespace openreg::driver {

enum EngineIndex { kCompute, kCopy, kEngineCount };

// An engine without its thread: spin() and sleep() are for the thread that serves it (EngineThreads). Guarded by the
// scheduler's mutex, except has_work_.
class Engine {
 public:
  explicit Engine(EngineIndex index) : index_(index) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EngineIndex index() const { return index_; }
  const char* name() const { return index_ == kCompute ? "compute" : "copy"; }
  ReadyQueue& ready() { return ready_; }

  // Adds a stream whose head this engine is to execute, and wakes the engine.
  void make_ready(Stream& stream) {
    ready_.push(stream);
    wake();
  }
  // Makes the engine look for tasks; it sleeps again if it finds none.
  void wake() {
    has_work_.store(true, std::memory_order_relaxed);
    if (sleeping_) {
      work_.notify_one();
    }
  }
  // Records that the engine has looked for tasks and found none.
  void found_nothing() { has_work_.store(false, std::memory_order_relaxed); }
  // Wakes the engine for good: it takes no further task.
  void stop();
  bool is_stopped() const { return stopped_; }

  // Polls for tasks without the mutex, for about as long as waking a thread would take.
  void spin(Lock& lock);
  // Blocks until wake() or stop() is called, at most `longest` nanoseconds; 0 means without a limit. Releases the mutex
  // while it blocks.
  void sleep(Lock& lock, uint64_t longest);

  // Records that the engine executes the stream's head from now on. Returns the time, in nanoseconds of the steady
  // clock.
  uint64_t begin(const Stream& stream);
  // Records that the task has been executed, and sets `time` to its end. Returns its duration, in nanoseconds.
  uint64_t end(uint64_t& time);

  bool is_running() const { return running_ != nullptr; }
  bool is_running(const Stream& stream) const { return running_ == &stream; }
  bool is_running(const Device& device) const { return running_device_ == &device; }
  uint64_t running_since() const { return running_since_; }
  orEngineStats stats() const;

 private:
  const EngineIndex index_;
  ReadyQueue ready_;
  std::condition_variable work_;
  bool sleeping_ = false;
  bool stopped_ = false;
  std::atomic<bool> has_work_{false};  // atomic, because spin() reads it without the mutex
  const Stream* running_ = nullptr;    // stream whose head it executes since `running_since_`; null while idle
  const Device* running_device_ = nullptr;
  uint64_t running_since_ = 0;
  uint64_t tasks_ = 0;
  uint64_t busy_nanoseconds_ = 0;
};

}  // namespace openreg::driver
