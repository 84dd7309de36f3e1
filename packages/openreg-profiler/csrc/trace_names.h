// SPDX-License-Identifier: BSD-3-Clause
// The names of streams, engines and copies in a trace.
#pragma once

#include <string>
#include <vector>

#include "activity_recorder.h"
#include "openreg.h"

namespace openreg::profiler {

// Sets the name of a stream in traces, because PyTorch's streams have none. An empty name restores the generated one.
// The name stays with the handle until the process exits. Thread-safe.
void name_stream(orStream_t stream, std::string name);

// Returns the name that name_stream() has set, or a generated one, such as "default stream", "stream 5" or "stream 6
// (priority -1)". `queue` is the stream's number in traces. Does not throw for a destroyed stream. Thread-safe.
std::string stream_name(orStream_t stream, int device, uint32_t queue);

// Returns the name of each engine by its index, such as "compute 0" and "copy 1". Empty if the query fails.
std::vector<std::string> engine_names();

// Returns the name of a copy or fill in the format of CUDA's traces: "Memcpy HtoD (Pageable -> Device)". `freed`
// supplies the types of memory that no longer exists.
std::string transfer_name(const TaskRecord& task, const std::vector<FreedRange>& freed);

}  // namespace openreg::profiler
