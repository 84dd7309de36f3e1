// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder in PyTorch's form (source: c10d's FlightRecorder.hpp): its settings, format and file.
#pragma once

#include <memory>
#include <string>

#include "progress/flight_recorder.h"

namespace openreg::distributed {

// Returns the flight recorder of the process. Its capacity is TORCH_FR_BUFFER_SIZE, 2000 by default.
FlightRecorder& flight_recorder();
// Returns the Python stack of the calling thread, or null if no records are kept. Takes the GIL.
std::shared_ptr<void> calling_stack();

// Returns all records, pickled; with `only_active`, those of operations that have not completed. Takes the GIL if
// `with_stacks` is true.
std::string dump_trace(bool with_stacks, bool only_active);
// Writes the records, without stacks, to the file that TORCH_FR_DUMP_TEMP_FILE names, with the rank appended. Does
// nothing if the variable is not set. Never throws.
void write_trace(int global_rank) noexcept;

}  // namespace openreg::distributed
