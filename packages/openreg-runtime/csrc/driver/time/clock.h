// SPDX-License-Identifier: BSD-3-Clause
// Clock is the clock of events and observers (tools such as profilers, which subscribe by orSubscribe()). It selects
// one of three clocks: the steady clock, that of a seeded schedule (OPENREG_SCHEDULE_SEED), or simulated time
// (orSubscribeTime).
#pragma once

#include <cstdint>

#include "base/steady_time.h"
#include "time/seeded_order.h"
#include "time/simulated_time.h"

namespace openreg::driver {

// The clock of events and observers, in nanoseconds. It reads the clock of the seeded schedule if there is a seed,
// simulated time while a subscriber supplies it, and the steady clock otherwise. Guarded by the scheduler's mutex, as
// the first two clocks are.
class Clock {
 public:
  // `order` is the clock of the seeded schedule. Null without a seed.
  Clock(const SeededOrder* order, const SimulatedTime& simulated) : order_(order), simulated_time_(simulated) {}

  // Returns the time of the device. While time is simulated, that is the time of the task that the CommandProcessor
  // handles.
  uint64_t time() const {
    if (order_ != nullptr) {
      return order_->time();
    }
    return simulated_time_.is_on() ? simulated_time_.shown() : now();
  }
  // Returns the host's time, which differs from time() only while time is simulated.
  uint64_t host_time() const { return simulated_time_.is_on() ? simulated_time_.host() : time(); }

 private:
  const SeededOrder* const order_;
  const SimulatedTime& simulated_time_;
};

}  // namespace openreg::driver
