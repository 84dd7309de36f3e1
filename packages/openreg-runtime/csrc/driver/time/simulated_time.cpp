// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no counterpart, because the tasks of a device take real time.
#include "time/simulated_time.h"

namespace openreg::driver {

void SimulatedTime::begin(uint64_t time) {
  on_ = true;
  host_ = shown_ = time;
  free_at_.fill(time);
  streams_.clear();
}

void SimulatedTime::enqueue(const Stream& stream, uint64_t nanoseconds) {
  while (streams_.size() <= stream.index) {
    streams_.emplace_back();
  }
  StreamTimes& own = streams_[stream.index];
  if (own.launches.empty() && own.ends.empty()) {
    own.last_ticket_before = stream.submitted - 1;
  }
  host_ = later(host_, nanoseconds);
  own.launches.push_back({host_, ++newest_});
}

uint64_t SimulatedTime::earliest(const Stream& stream) const {
  const StreamTimes& own = *times_of(stream);
  return std::max(own.time, own.launches.front().time);
}

uint64_t SimulatedTime::occupy(const Stream& stream, int engine, uint64_t nanoseconds) {
  const uint64_t time = later(start(stream, engine), nanoseconds);
  if (engine != kNoEngine) {
    free_at_[static_cast<size_t>(engine)] = time;
  }
  streams_[stream.index].ran_until = time;
  return time;
}

void SimulatedTime::complete(const Stream& stream, uint64_t time) {
  StreamTimes& own = streams_[stream.index];
  own.time = time;
  own.ends.push_back(time);
  own.launches.pop_front();
}

uint64_t SimulatedTime::end_of(const Stream& stream, uint64_t ticket) const {
  const StreamTimes* own = times_of(stream);
  const bool is_from_before = own == nullptr || own->ends.empty() || ticket <= own->last_ticket_before;
  return is_from_before ? 0 : own->ends[ticket - own->last_ticket_before - 1];
}

}  // namespace openreg::driver
