// SPDX-License-Identifier: BSD-3-Clause
// TimerQueue holds the streams that are in a delay (orStreamDelay()), ordered by the time at which the delay ends.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/lock.h"

namespace openreg::driver {

struct Stream;

// A priority queue of streams whose oldest task is a delay, earliest end first. Times are in nanoseconds of the
// scheduler's Clock. Guarded by the scheduler's mutex. Owns no thread: the timer thread of EngineThreads calls the wait
// functions. A seeded schedule (OPENREG_SCHEDULE_SEED) has no timer thread: it calls take() when the schedule's clock
// reaches the end of a delay.
class TimerQueue {
 public:
  // Adds a stream whose delay ends at `time`.
  void add(uint64_t time, Stream& stream) {
    heap_.emplace(time, &stream);
    changed_.notify_one();
  }
  bool is_empty() const { return heap_.empty(); }
  // Returns the time at which the first delay ends. The queue must not be empty.
  uint64_t earliest() const { return heap_.top().first; }
  // Removes and returns the stream whose delay ends first. The queue must not be empty.
  Stream& take() {
    Stream& stream = *heap_.top().second;
    heap_.pop();
    return stream;
  }

  // Blocks until add() or interrupt() is called. May return without such a call. Releases the mutex while it blocks.
  void wait(Lock& lock) { changed_.wait(lock); }
  // Same as wait(), except that it also returns at `time`, in nanoseconds of the steady clock.
  void wait_until(uint64_t time, Lock& lock);
  // Makes the calls that block in wait() and wait_until() return.
  void interrupt() { changed_.notify_all(); }

 private:
  using Deadline = std::pair<uint64_t, Stream*>;

  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> heap_;
  std::condition_variable changed_;
};

}  // namespace openreg::driver
