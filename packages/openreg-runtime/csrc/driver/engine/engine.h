// SPDX-License-Identifier: BSD-3-Clause
// One engine as the scheduler sees it: the streams that are ready to run on it, what it runs and since when, and how a
// thread that serves it sleeps and is woken.
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

// Guarded by the scheduler's mutex, has_work_ excepted. Owns no thread: spin() and sleep() are for the one that serves
// the engine.
class Engine {
 public:
  explicit Engine(EngineIndex index) : index_(index) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EngineIndex index() const { return index_; }
  const char* name() const { return index_ == kCompute ? "compute" : "copy"; }
  ReadyQueue& ready() { return ready_; }

  // Adds a stream whose head is to run, and wakes the engine.
  void make_ready(Stream& stream) {
    ready_.push(stream);
    wake();
  }
  // Lets the engine look for work; one that finds nothing sleeps again.
  void wake() {
    has_work_.store(true, std::memory_order_relaxed);
    if (sleeping_) {
      work_.notify_one();
    }
  }
  // It has looked and found nothing.
  void found_nothing() { has_work_.store(false, std::memory_order_relaxed); }
  // Wakes the engine for good: it takes no more work.
  void stop();
  bool is_stopped() const { return stopped_; }

  // Looks for work, without the lock, for about as long as waking a thread would take.
  void spin(Lock& lock);
  // Sleeps until wake() or stop(), but for `longest` nanoseconds at most, unless that is 0.
  void sleep(Lock& lock, uint64_t longest);

  // It runs the stream's head from now on. Returns the time, in nanoseconds.
  uint64_t begin(const Stream& stream);
  // It is done with the task. Returns how long that took, in nanoseconds, and `time`, when it ended.
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
  std::atomic<bool> has_work_{false};  // a spinning engine looks at it without the lock
  const Stream* running_ = nullptr;    // whose task it runs, since `running_since_`
  const Device* running_device_ = nullptr;
  uint64_t running_since_ = 0;
  uint64_t tasks_ = 0;
  uint64_t busy_nanoseconds_ = 0;
};

}  // namespace openreg::driver
