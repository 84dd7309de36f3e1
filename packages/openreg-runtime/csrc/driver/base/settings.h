// SPDX-License-Identifier: BSD-3-Clause
// Settings are the values of the driver's environment variables, which the first call of settings() reads and checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/faults.h"

namespace openreg::driver {

// The settings of one process. Immutable once read.
struct Settings {
  int device_count;                       // OPENREG_DEVICE_COUNT
  size_t device_memory;                   // OPENREG_DEVICE_MEMORY, bytes per device, a multiple of the page size
  bool launch_blocking;                   // OPENREG_LAUNCH_BLOCKING: launches return after the task
  std::optional<uint64_t> schedule_seed;  // OPENREG_SCHEDULE_SEED, the seed of the order of tasks
  uint64_t schedule_timeout;              // OPENREG_SCHEDULE_TIMEOUT, nanoseconds (see SeededSchedule)
  std::vector<Fault> faults;              // OPENREG_FAULTS
  bool poison;                            // OPENREG_POISON: new memory is filled with kPoison
};

// Returns the settings. Reads the environment in the first call. Throws Error(orErrorInvalidConfiguration) with the
// variable, its value and the accepted form if a value is invalid. The next call then reads the environment again.
// Thread-safe.
const Settings& settings();

// Makes the next settings() read the environment again. For a child of fork() whose parent has used no device, so that
// the child can have settings of its own. If the parent had read its settings, settings() then rejects a different
// device count, because the program may have cached the count.
void read_settings_again();

}  // namespace openreg::driver
