// SPDX-License-Identifier: BSD-3-Clause
// The straps of the simulated board: what environment variables set before first use.
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

// Read once, on first call. Throws Error(orErrorInvalidConfiguration) that names variable, value and the accepted form;
// and does so again on every later call.
const Settings& settings();

// In a child of fork() whose parent has read settings and used no device: the next call reads the environment anew. The
// number of devices stays, because the parent may have remembered it: another one is refused.
void read_settings_again();

}  // namespace openreg::driver
