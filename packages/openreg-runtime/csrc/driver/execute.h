// SPDX-License-Identifier: BSD-3-Clause
// What an engine does with one task.
#pragma once

#include <string>

#include "device.h"
#include "stream.h"

namespace openreg::driver {

// Whether the calling thread is an engine; it must not wait for work.
bool& on_engine();

// Runs the task, or only releases what it owns when `skip` is set. Adds to `counters`. Returns an empty string or why
// the task failed. Never throws.
std::string execute(const Task& task, bool skip, Counters& counters) noexcept;

}  // namespace openreg::driver
