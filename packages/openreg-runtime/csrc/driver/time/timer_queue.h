// SPDX-License-Identifier: BSD-3-Clause
// A queue of the times at which the delays of streams end.
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

// A queue of streams whose heads are delays, earliest end first. Times are nanoseconds of the scheduler's `Clock`.
// Guarded by the scheduler's mutex. Owns no thread: the timer thread calls the wait functions, and with a seed there is
// none.
class TimerQueue {
 public:
  void add(uint64_t time, Stream& stream) {
    heap_.emplace(time, &stream);
    changed_.notify_one();
  }
  bool is_empty() const { return heap_.empty(); }
  // Returns the end of the earliest delay. The queue must not be empty, also for take().
  uint64_t earliest() const { return heap_.top().first; }
  // Removes the earliest delay.
  Stream& take() {
    Stream& stream = *heap_.top().second;
    heap_.pop();
    return stream;
  }

  // Blocks until add() or interrupt() is called; may return spuriously. Releases the mutex while it blocks.
  void wait(Lock& lock) { changed_.wait(lock); }
  // Same as wait(), except that it also returns at `time`, in nanoseconds of the steady clock.
  void wait_until(uint64_t time, Lock& lock);
  void interrupt() { changed_.notify_all(); }

 private:
  using Deadline = std::pair<uint64_t, Stream*>;

  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> heap_;
  std::condition_variable changed_;
};

}  // namespace openreg::driver
