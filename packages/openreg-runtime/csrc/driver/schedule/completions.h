// SPDX-License-Identifier: BSD-3-Clause
// Completions is the list of streams whose heads (oldest tasks) are complete but not removed yet.
#pragma once

#include <deque>

namespace openreg::driver {

struct Stream;

// The part of the scheduler that completes the head of a stream adds the stream to this list, and
// CommandProcessor::settle() removes the head and passes the next task to the part that completes it. This is a list,
// because a recursion would be as deep as a chain of waits between streams, which may have any length. Guarded by the
// scheduler's mutex.
using Completions = std::deque<Stream*>;

}  // namespace openreg::driver
