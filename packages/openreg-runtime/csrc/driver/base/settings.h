// SPDX-License-Identifier: BSD-3-Clause
// The settings of the driver, which it reads from environment variables on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/faults.h"

namespace openreg::driver {

struct Settings {
  int device_count;                       // OPENREG_DEVICE_COUNT
  size_t device_memory;                   // OPENREG_DEVICE_MEMORY, bytes per device, a multiple of the page size
  bool launch_blocking;                   // OPENREG_LAUNCH_BLOCKING
  std::optional<uint64_t> schedule_seed;  // OPENREG_SCHEDULE_SEED
  std::vector<Fault> faults;              // OPENREG_FAULTS
  bool poison;                            // OPENREG_POISON: new memory is filled with kPoison
};

// Returns the settings, which the first call reads. Throws Error(orErrorInvalidConfiguration) with variable, value and
// accepted form if a value is invalid; every later call then throws, too. Thread-safe.
const Settings& settings();

// Makes a later settings() read the environment again, in a child of fork() whose parent has used no device. If the
// parent had read its settings, settings() rejects another device count, because the program may have cached it.
void read_settings_again();

}  // namespace openreg::driver
