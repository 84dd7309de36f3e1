// SPDX-License-Identifier: BSD-3-Clause
// Engines holds the compute engine and the copy engine, which execute the tasks of all devices.
#pragma once

#include <array>

#include "engine/engine.h"
#include "objects/device.h"
#include "objects/stream.h"

namespace openreg::driver {

// The engines of the process. One compute engine serves all devices, because kernels are parallelized with OpenMP,
// which is fast only if a single thread starts parallel regions. Large copies need no OpenMP and are executed by the
// copy engine, and so are short ones for which a host thread waits: by that thread, in the place of the engine's own.
// Guarded by the scheduler's mutex.
class Engines {
 public:
  // If `value` is true, the compute engine executes all tasks from now on, also those of the copy engine. A
  // DeferredSchedule (a schedule that executes tasks only while the host waits) requires that, because it executes one
  // task at a time. Must be called while all queues are empty.
  void set_one_at_a_time(bool value) { one_at_a_time_ = value; }
  // Returns the engine that executes the tasks meant for engine `index`: that engine, or the compute engine after
  // set_one_at_a_time(true).
  Engine& serving(EngineIndex index) { return engines_[one_at_a_time_ ? kCompute : index]; }
  Engine& operator[](EngineIndex index) { return engines_[index]; }
  const Engine& operator[](EngineIndex index) const { return engines_[index]; }

  // Returns true if any engine executes a task.
  bool any_running() const;
  void wake_all();
  void stop_all();

  // Return the counters of a device or stream up to now, including the tasks in execution.
  Counters counters(const Device& device) const;
  Counters counters(const Stream& stream) const;
  // Returns the percentage of the past second in which engines executed tasks of the device.
  int utilization(const Device& device) const;

 private:
  template <class Owner>
  Counters counters_of(const Owner& owner) const;

  bool one_at_a_time_ = false;
  std::array<Engine, kEngineCount> engines_{Engine(kCompute), Engine(kCopy)};
};

}  // namespace openreg::driver
