// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder as PyTorch knows one (source: c10d's FlightRecorder.hpp): settings, form, file.
#pragma once

#include <memory>
#include <string>

#include "progress/flight_recorder.h"

namespace openreg::distributed {

// That of the process, which keeps as many records as TORCH_FR_BUFFER_SIZE says, 2000 by default.
FlightRecorder& flight_recorder();
// The Python stack of the calling line, where records are kept.
std::shared_ptr<void> calling_stack();

// All records, pickled. With stacks it takes the GIL. `only_active`: of calls that have not ended.
std::string dump_trace(bool with_stacks, bool only_active);
// Writes it, without stacks, to the file that TORCH_FR_DUMP_TEMP_FILE names, with the rank at its end; nothing unless
// that is set. Never throws.
void write_trace(int global_rank) noexcept;

}  // namespace openreg::distributed
