// SPDX-License-Identifier: BSD-3-Clause
// The execution of one task by an engine.
#pragma once

#include <string>

#include "objects/device.h"
#include "objects/stream.h"

namespace openreg::driver {

// Returns a thread-local flag, for reading and writing, that is true on engine threads. They must not block on tasks,
// because only they can execute them.
bool& is_engine_thread();
// Throws Error(orErrorNotSupported) on an engine thread.
void check_not_engine_thread();

// The failure of a task, if any.
struct Failure {
  std::string text;  // what failed and why; empty on success
  bool device_lost = false;
};

// Executes the task, adds to `counters` and returns its failure. With `skip` or an injected fault, only releases what
// the task owns. Never throws.
Failure execute(const Task& task, bool skip, Counters& counters) noexcept;

}  // namespace openreg::driver
