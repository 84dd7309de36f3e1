// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "seeded_order.h"

namespace openreg::driver {

// Nanoseconds of the steady clock.
uint64_t now();

// The time that events and observers are given, in nanoseconds: that of the steady clock, or, when a seed chooses the
// interleaving, the virtual one. Guarded by the scheduler's mutex, as the order is.
class Clock {
 public:
  // `order` is null without a seed.
  explicit Clock(const SeededOrder* order) : order_(order) {}

  uint64_t time() const { return order_ != nullptr ? order_->time() : now(); }

 private:
  const SeededOrder* const order_;
};

}  // namespace openreg::driver
