// SPDX-License-Identifier: BSD-3-Clause
// The engines, which execute the tasks of all devices.
#pragma once

#include <array>

#include "engine/engine.h"
#include "objects/device.h"
#include "objects/stream.h"

namespace openreg::driver {

// The engines of the process. One compute engine serves all devices, because only one thread of a process can run
// parallel kernels without slowing OpenMP down. Large copies need no parallelism and run on a second engine. Guarded by
// the scheduler's mutex.
class Engines {
 public:
  // Makes the compute engine execute all tasks while `value` is true. Deferred schedules require this, because time
  // would pass on a second engine while the first executes a task. Must be called while all queues are empty.
  void set_one_at_a_time(bool value) { one_at_a_time_ = value; }
  // Returns the engine that executes tasks meant for `index`.
  Engine& serving(EngineIndex index) { return engines_[one_at_a_time_ ? kCompute : index]; }
  Engine& operator[](EngineIndex index) { return engines_[index]; }
  const Engine& operator[](EngineIndex index) const { return engines_[index]; }

  bool any_running() const;
  void wake_all();
  void stop_all();

  // Return the totals up to now, including tasks in execution.
  Counters counters(const Device& device) const;
  Counters counters(const Stream& stream) const;
  // Returns the percentage of the last second that the device was busy.
  int utilization(const Device& device) const;

 private:
  template <class Owner>
  Counters counters_of(const Owner& owner) const;

  bool one_at_a_time_ = false;
  std::array<Engine, kEngineCount> engines_{Engine(kCompute), Engine(kCopy)};
};

}  // namespace openreg::driver
