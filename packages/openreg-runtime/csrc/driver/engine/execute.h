// SPDX-License-Identifier: BSD-3-Clause
// execute() executes one task on the thread of an engine.
#pragma once

#include <string>

#include "objects/device.h"
#include "objects/stream.h"

namespace openreg::driver {

// Returns a thread-local flag, for reading and writing, that is true on engine threads. An engine thread must not block
// until a task is complete, because only engine threads execute tasks.
bool& is_engine_thread();
// Throws Error(orErrorNotSupported) on an engine thread.
void check_not_engine_thread();

// Executes the task, counts it in `counters` if it is a kernel, a copy or a fill, and releases what it owns. Returns
// what failed and why, or an empty string on success. If `skip` is true or the task has an injected fault, only
// releases what it owns. Waits, event records and delays need no engine; for them it does nothing. The caller does not
// hold the scheduler's mutex. Never throws.
std::string execute(const Task& task, bool skip, Counters& counters) noexcept;

}  // namespace openreg::driver
