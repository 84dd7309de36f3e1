// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "base/steady_time.h"
#include "time/modelled_time.h"
#include "time/seeded_order.h"

namespace openreg::driver {

// The time that events and observers are given, in nanoseconds: that of the steady clock, or, when a seed chooses the
// interleaving, the virtual one, or that of a modelled chip. Guarded by the scheduler's mutex, as these are.
class Clock {
 public:
  // `order` is null without a seed.
  Clock(const SeededOrder* order, const ModelledTime& modelled) : order_(order), modelled_(modelled) {}

  uint64_t time() const {
    if (order_ != nullptr) {
      return order_->time();
    }
    return modelled_.is_on() ? modelled_.shown() : now();
  }
  // The same for what the host does now.
  uint64_t host_time() const { return modelled_.is_on() ? modelled_.host() : time(); }

 private:
  const SeededOrder* const order_;
  const ModelledTime& modelled_;
};

}  // namespace openreg::driver
