// SPDX-License-Identifier: BSD-3-Clause
// The clock of simulated time (orSubscribeTime): when the engines of another chip would begin and end the tasks that
// run here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "objects/stream.h"

namespace openreg::driver {

// A discrete-event clock. A task begins when the host has enqueued it, its engine is free, and its dependencies and all
// earlier tasks of its stream have ended. Callers select the tasks and supply their durations. All times are in
// nanoseconds. Guarded by the scheduler's mutex.
class SimulatedTime {
 public:
  static constexpr int kNoEngine = -1;
  static constexpr size_t kEngines = 64;

  // Returns `time` + `nanoseconds`, but adds nothing beyond kEndOfTime, because the sum could overflow.
  static uint64_t later(uint64_t time, uint64_t nanoseconds) {
    return time + std::min(nanoseconds, kEndOfTime - std::min(kEndOfTime, time));
  }

  bool is_on() const { return on_; }
  // Starts simulated time. All queues must be empty, also for end().
  void begin(uint64_t time);
  void end() { on_ = false; }

  // Returns the host's time, which all of its threads share.
  uint64_t host() const { return host_; }
  // Advances the host's time to `time` if it is behind, because the host waited.
  void wait_until(uint64_t time) { host_ = std::max(host_, time); }
  // Advances the host's time by the duration of enqueuing the stream's newest task, which is launched then.
  void enqueue(const Stream& stream, uint64_t nanoseconds);

  // Returns when the stream's head can begin if its engine is free.
  uint64_t earliest(const Stream& stream) const;
  // Returns the number of the stream's head among the tasks of all streams, in the order of enqueuing.
  uint64_t number(const Stream& stream) const { return queue(stream)->launches.front().number; }
  // Returns when the stream's head can begin on `engine`, which may be kNoEngine.
  uint64_t start(const Stream& stream, int engine) const {
    return engine == kNoEngine ? earliest(stream) : std::max(earliest(stream), free_at_[static_cast<size_t>(engine)]);
  }
  // Makes `engine`, unless it is kNoEngine, busy with the stream's head for `nanoseconds` from start() on. Returns when
  // the head ends, which ran_until() returns afterwards.
  uint64_t occupy(const Stream& stream, int engine, uint64_t nanoseconds);
  uint64_t ran_until(const Stream& stream) const { return queue(stream)->ran_until; }
  // Records that the stream's head ends at `time`, not before earliest(), and makes its successor the head.
  void complete(const Stream& stream, uint64_t time);
  // Returns when a completed task ended; 0 if that was before time was simulated.
  uint64_t end_of(const Stream& stream, uint64_t ticket) const;

  // Returns the device's time, which the command processor sets while it advances a stream.
  uint64_t shown() const { return shown_; }
  void show(uint64_t time) { shown_ = time; }

 private:
  // Half of what a clock can show. The other half prevents an overflow after a task of absurd duration.
  static constexpr uint64_t kEndOfTime = std::numeric_limits<uint64_t>::max() / 2;

  struct Launch {
    uint64_t time;
    uint64_t number;
  };
  struct Queue {
    uint64_t first_ticket = 0;  // ticket of the newest task from before time was simulated
    uint64_t time = 0;          // end of the newest completed task
    uint64_t ran_until = 0;
    std::deque<Launch> launches;
    std::vector<uint64_t> ends;  // of all completed tasks after `first_ticket`
  };

  const Queue* queue(const Stream& stream) const {
    return stream.index < queues_.size() ? &queues_[stream.index] : nullptr;
  }

  bool on_ = false;
  uint64_t host_ = 0;
  uint64_t shown_ = 0;
  uint64_t newest_ = 0;
  std::array<uint64_t, kEngines> free_at_{};
  std::deque<Queue> queues_;  // indexed by Stream::index
};

}  // namespace openreg::driver
