// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the driver reads the list of engines and their statistics from registers of the device.
#include "engine/engines.h"

#include <algorithm>
#include "base/steady_time.h"

namespace openreg::driver {

bool Engines::any_running() const {
  return std::any_of(engines_.begin(), engines_.end(), [](const Engine& engine) { return engine.is_running(); });
}

void Engines::wake_all() {
  for (Engine& engine : engines_) {
    engine.wake();
  }
}

void Engines::stop_all() {
  for (Engine& engine : engines_) {
    engine.stop();
  }
}

template <class Owner>
Counters Engines::counters_of(const Owner& owner) const {
  Counters result = owner.counters;
  for (const Engine& engine : engines_) {
    if (engine.is_running(owner)) {
      result.busy_nanoseconds += now() - engine.running_since();
    }
  }
  return result;
}

Counters Engines::counters(const Device& device) const {
  return counters_of(device);
}

Counters Engines::counters(const Stream& stream) const {
  return counters_of(stream);
}

int Engines::utilization(const Device& device) const {
  BusyMeter busy = device.busy;
  const uint64_t time = now();
  for (const Engine& engine : engines_) {
    if (engine.is_running(device)) {
      busy.add(engine.running_since(), time);
    }
  }
  return static_cast<int>(busy.busy(time) * 100 / BusyMeter::kWindow);
}

}  // namespace openreg::driver
