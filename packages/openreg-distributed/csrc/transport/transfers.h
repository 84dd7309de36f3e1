// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "progress/progress_engine.h"

namespace openreg::distributed {

// One call of the transport, on memory of the host. The operation knows from whom a message comes.
using Transfer = std::function<c10::intrusive_ptr<c10d::Work>(c10d::Backend&, const Operation&)>;

// How long the transport waits by itself: it is the group that watches the time, and tells what is wrong.
inline std::chrono::milliseconds transport_limit(std::chrono::milliseconds timeout) {
  return timeout + std::chrono::seconds(30);
}

// An error message without the stack that c10 appends to it.
std::string first_paragraph(const std::string& message);

// How an operation is handed to the transport: all its calls are begun, and Progress hears when the last one is over.
// The calls of messages are waited for, as Gloo gives them no future. The transport is not owned.
Operation::Post post_all(c10d::Backend& transport, std::shared_ptr<Progress> progress, std::vector<Transfer> transfers,
                         bool are_messages);

}  // namespace openreg::distributed
