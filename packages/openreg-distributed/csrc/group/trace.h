// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder (progress/flight_recorder.h) of this process, with the settings and the file format of PyTorch's
// flight recorders (source: c10d's FlightRecorder.hpp).
#pragma once

#include <memory>
#include <string>

#include "progress/flight_recorder.h"

namespace openreg::distributed {

// Returns the flight recorder of the process. Its capacity (number of records) is TORCH_FR_BUFFER_SIZE, or
// TORCH_NCCL_TRACE_BUFFER_SIZE if only that is set, and 2000 by default.
FlightRecorder& flight_recorder();
// Returns the Python stack of the calling thread, a torch::CapturedTraceback, or null if no records are kept. Takes the
// GIL.
std::shared_ptr<void> calling_stack();

// Returns all records in the pickle format of PyTorch's flight recorders. With `only_active`, returns only those of
// operations that are not over. Takes the GIL if `with_stacks` is true.
std::string dump_trace(bool with_stacks, bool only_active);
// Writes the records, without stacks, to the file that TORCH_FR_DUMP_TEMP_FILE names, with the rank appended. Does
// nothing if the variable is not set. Never throws.
void write_trace(int global_rank) noexcept;

}  // namespace openreg::distributed
