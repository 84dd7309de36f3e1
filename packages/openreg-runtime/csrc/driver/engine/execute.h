// SPDX-License-Identifier: BSD-3-Clause
// What an engine does with one task.
#pragma once

#include <string>

#include "objects/device.h"
#include "objects/stream.h"

namespace openreg::driver {

// Whether the calling thread is an engine; it must not wait for work.
bool& is_engine_thread();
// Throws Error(orErrorNotSupported) when it is.
void check_not_engine_thread();

// The result of a task.
struct Failure {
  std::string text;  // what failed and why; empty when nothing did
  bool device_lost = false;
};

// Runs the task, or only releases what it owns when `skip` is set. Adds to `counters`. Never throws.
Failure execute(const Task& task, bool skip, Counters& counters) noexcept;

}  // namespace openreg::driver
