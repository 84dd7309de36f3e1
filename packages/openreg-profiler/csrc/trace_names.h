// SPDX-License-Identifier: BSD-3-Clause
// What streams, engines and copies are called in a trace.
#pragma once

#include <string>
#include <vector>

#include "openreg.h"
#include "recorder.h"

namespace openreg::profiler {

// From now on traces show a stream under this name; an empty one gives it back its own. Streams have no name in
// PyTorch. The name stays with the handle for the life of the process. Any thread may call it.
void name_stream(orStream_t stream, std::string name);

// "default stream", "stream 5", "stream 6 (priority -1)", or the name that it was given. `queue` is its number in
// traces. Never throws for a stream that is no more.
std::string stream_name(orStream_t stream, int device, uint32_t queue);

// "compute 0", "copy 1": of each engine, by its index. Empty where the device cannot be asked.
std::vector<std::string> engine_names();

// From where to where a copy or a fill goes, in the form that CUDA's traces have: "Memcpy HtoD (Pageable -> Device)".
std::string transfer_name(const Task& task, const std::vector<Released>& released);

}  // namespace openreg::profiler
