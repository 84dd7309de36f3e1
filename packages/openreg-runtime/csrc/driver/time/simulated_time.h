// SPDX-License-Identifier: BSD-3-Clause
// The time of a chip that is not there (orSubscribeTime): when its engines would begin and end what runs here.
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

// Discrete-event time. An entry of a queue begins when the host has enqueued it, what its stream held before has ended,
// what it waits for has ended, and its engine is free. Knows neither what runs next nor how long that takes. All times
// are nanoseconds. Guarded by the scheduler's mutex.
class SimulatedTime {
 public:
  static constexpr int kNoEngine = -1;
  static constexpr size_t kEngines = 64;

  // So much later, as far as a clock can show it.
  static uint64_t later(uint64_t time, uint64_t nanoseconds) {
    return time + std::min(nanoseconds, kEndOfTime - std::min(kEndOfTime, time));
  }

  bool is_on() const { return on_; }
  // From now on time is simulated. All queues have to be empty, before end() too.
  void begin(uint64_t time);
  void end() { on_ = false; }

  // The host's clock, one for all of its threads.
  uint64_t host() const { return host_; }
  // The host waits until then.
  void wait_until(uint64_t time) { host_ = std::max(host_, time); }
  // It has enqueued the stream's newest entry, which took so long.
  void enqueue(const Stream& stream, uint64_t nanoseconds);

  // When the stream's head can begin, but for its engine.
  uint64_t earliest(const Stream& stream) const;
  // The head's number among all entries that were enqueued.
  uint64_t number(const Stream& stream) const { return queue(stream)->launches.front().number; }
  // When it can begin on that engine.
  uint64_t start(const Stream& stream, int engine) const {
    return engine == kNoEngine ? earliest(stream) : std::max(earliest(stream), free_at_[static_cast<size_t>(engine)]);
  }
  // An engine, or none, runs the head from its start on. Returns when it ends, as ran_until() does from now on.
  uint64_t occupy(const Stream& stream, int engine, uint64_t nanoseconds);
  uint64_t ran_until(const Stream& stream) const { return queue(stream)->ran_until; }
  // The head is done at that time, not before earliest(); from now on the next entry is the head.
  void complete(const Stream& stream, uint64_t time);
  // When an entry ended that is done; 0: before time was simulated.
  uint64_t end_of(const Stream& stream, uint64_t ticket) const;

  // What a clock of the device shows while a stream is moved on.
  uint64_t shown() const { return shown_; }
  void show(uint64_t time) { shown_ = time; }

 private:
  // Half of what a clock can show; the other half is for what follows an answer of absurd length.
  static constexpr uint64_t kEndOfTime = std::numeric_limits<uint64_t>::max() / 2;

  struct Launch {
    uint64_t time;
    uint64_t number;
  };
  struct Queue {
    uint64_t first_ticket = 0;  // the newest that was done when time began to be simulated
    uint64_t time = 0;          // when the newest entry that is done has ended
    uint64_t ran_until = 0;
    std::deque<Launch> launches;
    std::vector<uint64_t> ends;  // of all tickets after the first
  };

  const Queue* queue(const Stream& stream) const {
    return stream.index < queues_.size() ? &queues_[stream.index] : nullptr;
  }

  bool on_ = false;
  uint64_t host_ = 0;
  uint64_t shown_ = 0;
  uint64_t newest_ = 0;
  std::array<uint64_t, kEngines> free_at_{};
  std::deque<Queue> queues_;  // by the index of the stream
};

}  // namespace openreg::driver
