// SPDX-License-Identifier: BSD-3-Clause
// The calls with which an operation uses the transport, the c10d backend that moves bytes between ranks (Gloo).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "progress/progress_engine.h"

namespace openreg::distributed {

// A function that makes one call of the transport on host memory. A receive takes the number of the sending rank from
// Operation::source(), because for a receive from any rank it is known only when the operation starts.
using Transfer = std::function<c10::intrusive_ptr<c10d::Work>(c10d::Backend&, const Operation&)>;

// Returns the timeout for the transport. It is longer than that of the operation, because the progress engine enforces
// the operation's timeout and then reports the cause.
inline std::chrono::milliseconds transport_limit(std::chrono::milliseconds timeout) {
  return timeout + std::chrono::seconds(30);
}

// Returns an error message without the stack that c10 appends to it.
std::string first_paragraph(const std::string& message);

// Returns the function that hands an operation to the transport (Operation::Post). It starts all transfers, and
// ProgressEngine::transport_done() is called when the last one is complete. `are_messages` is true for sends and
// receives. Gloo's Work has no c10 Future for these, so a thread of ProgressEngine::wait_threads() waits for each
// transfer, or the calling thread if no thread can be started. The function does not own the transport, which must
// outlive it.
Operation::Post post_all(c10d::Backend& transport, std::shared_ptr<ProgressEngine> progress,
                         std::vector<Transfer> transfers, bool are_messages);

}  // namespace openreg::distributed
