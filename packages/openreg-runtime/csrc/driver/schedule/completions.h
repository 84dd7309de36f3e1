// SPDX-License-Identifier: BSD-3-Clause
// Completions is the list of streams whose heads (oldest tasks) are complete but not removed yet.
#pragma once

#include <deque>
#include <vector>

#include "objects/timeline_semaphore.h"

namespace openreg::driver {

// The part of the scheduler that completes the head of a stream adds the stream to this list, and
// CommandProcessor::settle() removes the head and passes the next task to the part that completes it. This is a list,
// because a recursion would be as deep as a chain of waits between streams, which may have any length. Guarded by the
// scheduler's mutex.
using Completions = std::deque<Stream*>;

// Removes the waiters for which `ends(waiter)` is true, and adds their streams to the completions, in the same order.
template <class Ends>
void end_waits(std::vector<Waiter>& waiters, Completions& completions, Ends&& ends) {
  std::erase_if(waiters, [&](const Waiter& waiter) {
    const bool has_ended = ends(waiter);
    if (has_ended) {
      completions.push_back(waiter.stream);
    }
    return has_ended;
  });
}

}  // namespace openreg::driver
