// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "base/steady_time.h"
#include "time/seeded_order.h"
#include "time/simulated_time.h"

namespace openreg::driver {

// The time that events and observers are given, in nanoseconds: that of the steady clock, or, when a seed chooses the
// interleaving, the virtual one, or that of a simulated chip. Guarded by the scheduler's mutex, as these are.
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
  // The same for what the host does now.
  uint64_t host_time() const { return simulated_time_.is_on() ? simulated_time_.host() : time(); }

 private:
  const SeededOrder* const order_;
  const SimulatedTime& simulated_time_;
};

}  // namespace openreg::driver
