// SPDX-License-Identifier: BSD-3-Clause
// The engines of the board, which serve all devices together.
#pragma once

#include <array>

#include "engine/engine.h"
#include "objects/device.h"
#include "objects/stream.h"

namespace openreg::driver {

// One compute engine serves all devices, because only one thread of a process can run parallel kernels without slowing
// OpenMP down; large copies, which need no parallelism, run on a second engine. Guarded by the scheduler's mutex.
class Engines {
 public:
  // While it is set the compute engine runs everything, as schedules need it that hold work back: a second one would
  // let time pass while the first runs a task. Changed while nothing is queued.
  void set_one_at_a_time(bool value) { one_at_a_time_ = value; }
  // The one that runs work meant for `index`.
  Engine& serving(EngineIndex index) { return engines_[one_at_a_time_ ? kCompute : index]; }
  Engine& operator[](EngineIndex index) { return engines_[index]; }
  const Engine& operator[](EngineIndex index) const { return engines_[index]; }

  bool any_running() const;
  void wake_all();
  void stop_all();

  // What was done, with what engines are doing up to now.
  Counters counters(const Device& device) const;
  Counters counters(const Stream& stream) const;
  // Per cent of the last second that the device was busy.
  int utilization(const Device& device) const;

 private:
  template <class Owner>
  Counters counters_of(const Owner& owner) const;

  bool one_at_a_time_ = false;
  std::array<Engine, kEngineCount> engines_{Engine(kCompute), Engine(kCopy)};
};

}  // namespace openreg::driver
