// SPDX-License-Identifier: BSD-3-Clause
// The clock from which events and observers take their times.
#pragma once

#include <cstdint>

#include "base/steady_time.h"
#include "time/seeded_order.h"
#include "time/simulated_time.h"

namespace openreg::driver {

// A source of times for events and observers, in nanoseconds: the steady clock, the clock of a seeded schedule, or
// simulated time. Guarded by the scheduler's mutex, like its sources.
class Clock {
 public:
  // `order` is null without a seed.
  Clock(const SeededOrder* order, const SimulatedTime& simulated) : order_(order), simulated_time_(simulated) {}

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
