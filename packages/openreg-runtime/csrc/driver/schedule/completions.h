// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>

namespace openreg::driver {

struct Stream;

// Streams whose head is done but not taken off yet. Whatever ends a head adds its stream here;
// CommandProcessor::settle() moves them on. A list, not a recursion: chains of waits between streams can be as long as
// their queues. Guarded by the scheduler's mutex.
using Completions = std::deque<Stream*>;

}  // namespace openreg::driver
