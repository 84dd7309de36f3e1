// SPDX-License-Identifier: BSD-3-Clause
// The list of streams whose heads are complete.
#pragma once

#include <deque>

namespace openreg::driver {

struct Stream;

// A list of streams whose head is complete but not removed yet. The part that completes a head adds its stream;
// CommandProcessor::settle() advances the streams. A list instead of recursion, because chains of waits between streams
// can be as long as their queues. Guarded by the scheduler's mutex.
using Completions = std::deque<Stream*>;

}  // namespace openreg::driver
