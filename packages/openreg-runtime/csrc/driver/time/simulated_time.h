// SPDX-License-Identifier: BSD-3-Clause
// SimulatedTime computes when the tasks that run here would begin and end on another chip. It is the clock of events
// and observers (tools behind a subscriber, such as the profiler) while one subscriber, the time source, supplies the
// durations and engines of tasks (orSubscribeTime).
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

// The clock of a discrete-event simulation. A task begins when the host has enqueued it, its engine is free, and its
// dependencies and all earlier tasks of its stream have ended. Callers select the tasks and supply their durations. The
// head of a stream is its oldest task that is not complete. All times are in nanoseconds. Guarded by the scheduler's
// mutex.
class SimulatedTime {
 public:
  static constexpr int kNoEngine = -1;    // of a task that needs no engine
  static constexpr size_t kEngines = 64;  // engines of the simulated chip

  // Returns `time` + `nanoseconds`, at most kEndOfTime, so that the sum cannot overflow.
  static uint64_t later(uint64_t time, uint64_t nanoseconds) {
    return time + std::min(nanoseconds, kEndOfTime - std::min(kEndOfTime, time));
  }

  bool is_on() const { return on_; }
  // Starts simulated time at `time`. All queues must be empty.
  void begin(uint64_t time);
  // Ends simulated time. All queues must be empty.
  void end() { on_ = false; }

  // Returns the host's time, which all of its threads share.
  uint64_t host() const { return host_; }
  // Advances the host's time to `time`, unless the host's time is later already. Called when a host thread has waited
  // until then.
  void wait_until(uint64_t time) { host_ = std::max(host_, time); }
  // Advances the host's time by `nanoseconds`, the duration of enqueuing the stream's newest task, and records the
  // result as the time of its launch. Must be called once for each task, when it gets its ticket (sequence number in
  // its stream).
  void enqueue(const Stream& stream, uint64_t nanoseconds);

  // Returns the time at which the stream's head can begin if its engine is free.
  uint64_t earliest(const Stream& stream) const;
  // Returns the position of the stream's head among the tasks of all streams, in the order in which they were enqueued.
  uint64_t number(const Stream& stream) const { return times_of(stream)->launches.front().number; }
  // Returns the time at which the stream's head can begin on `engine`, which may be kNoEngine.
  uint64_t start(const Stream& stream, int engine) const {
    return engine == kNoEngine ? earliest(stream) : std::max(earliest(stream), free_at_[static_cast<size_t>(engine)]);
  }
  // Occupies `engine`, unless it is kNoEngine, with the stream's head for `nanoseconds` from start() on. Returns the
  // time at which the head ends. The SimulatedSchedule calls it when an engine has executed or skipped the head.
  uint64_t occupy(const Stream& stream, int engine, uint64_t nanoseconds);
  // Returns what the stream's newest occupy() returned. If an engine has executed the head, the CommandProcessor, which
  // removes complete heads, passes this time to complete().
  uint64_t ran_until(const Stream& stream) const { return times_of(stream)->ran_until; }
  // Records that the stream's head ends at `time`, and makes the next task the head. `time` is not before earliest().
  // The CommandProcessor calls it for each head that it removes, also for waits and delays, which need no engine.
  void complete(const Stream& stream, uint64_t time);
  // Returns the time at which a complete task ended. Returns 0 if that was before simulated time began.
  uint64_t end_of(const Stream& stream, uint64_t ticket) const;

  // Return and set the time that Clock::time() returns. The CommandProcessor sets it to the time of the task that it
  // handles.
  uint64_t shown() const { return shown_; }
  void show(uint64_t time) { shown_ = time; }

 private:
  // Half of the range of a time. The other half prevents an overflow after a task of absurd duration.
  static constexpr uint64_t kEndOfTime = std::numeric_limits<uint64_t>::max() / 2;

  struct EnqueuedTask {
    uint64_t time;    // the host's time after it had enqueued the task
    uint64_t number;  // see number()
  };
  // The times of one stream's tasks.
  struct StreamTimes {
    uint64_t last_ticket_before = 0;    // ticket of the last task from before simulated time
    uint64_t time = 0;                  // end of the newest complete task
    uint64_t ran_until = 0;             // see ran_until()
    std::deque<EnqueuedTask> launches;  // of the tasks that are not complete, oldest first
    std::vector<uint64_t> ends;         // of all complete tasks after `last_ticket_before`
  };

  // May return null if no task of the stream was enqueued since begin().
  const StreamTimes* times_of(const Stream& stream) const {
    return stream.index < streams_.size() ? &streams_[stream.index] : nullptr;
  }

  bool on_ = false;
  uint64_t host_ = 0;
  uint64_t shown_ = 0;
  uint64_t newest_ = 0;                       // number of the newest task
  std::array<uint64_t, kEngines> free_at_{};  // for each engine, the time at which it is free
  std::deque<StreamTimes> streams_;           // indexed by Stream::index
};

}  // namespace openreg::driver
