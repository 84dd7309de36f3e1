// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: no such thing; a card runs what it has.
#include "schedule/held_back.h"

namespace openreg::driver {

bool HeldBack::is_demanded(bool passive_counts) {
  bool demanded = false;
  bool met = false;
  for (const Demand* demand : demands_) {
    if (demand->is_met()) {
      met = true;
    } else {
      demanded |= passive_counts || !demand->is_passive();
    }
  }
  if (met) {
    met_.notify_all();
  }
  return demanded;
}

void HeldBack::count_task() {
  for (Demand* demand : demands_) {
    demand->count_task();
  }
}

}  // namespace openreg::driver
