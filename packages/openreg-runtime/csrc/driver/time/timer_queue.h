// SPDX-License-Identifier: BSD-3-Clause
// When the delays of streams end.
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

// Times are nanoseconds of the scheduler's clock. Guarded by the scheduler's mutex. Owns no thread: the waits are for
// the timer, and without one, as under a seed, nobody makes them.
class TimerQueue {
 public:
  void add(uint64_t time, Stream& stream) {
    heap_.emplace(time, &stream);
    changed_.notify_one();
  }
  bool is_empty() const { return heap_.empty(); }
  // The next are for a heap that is not empty.
  uint64_t earliest() const { return heap_.top().first; }
  // Removes the earliest.
  Stream& take() {
    Stream& stream = *heap_.top().second;
    heap_.pop();
    return stream;
  }

  // Sleeps until something may have changed: one was added, interrupt() was called, or `time`, of the steady clock, has
  // come.
  void wait(Lock& lock) { changed_.wait(lock); }
  void wait_until(uint64_t time, Lock& lock);
  void interrupt() { changed_.notify_all(); }

 private:
  using Deadline = std::pair<uint64_t, Stream*>;

  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> heap_;
  std::condition_variable changed_;
};

}  // namespace openreg::driver
