// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "openreg.h"
#include "operation.h"

namespace openreg::distributed {

// A stream on which operations of one kind wait for their messages, and the semaphore that it waits for: the n-th
// operation waits for the value n. So an operation waits on the device for those before it on its lane; which lane it
// takes must therefore follow from the program alone, never from what has ended already. Not thread-safe.
class Lane {
 public:
  // Does not own the stream. Throws std::runtime_error with the driver's text.
  explicit Lane(orStream_t stream);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // Enqueues the wait of the next operation: the ticket is ready when what the stream holds now is done, and what is
  // enqueued from now on runs when the ticket is signalled. Gives the driver's code, and no ticket, where the device
  // has failed since the call began.
  orError_t hold(std::unique_ptr<Ticket>& ticket);

 private:
  orStream_t stream_;
  orSemaphore_t semaphore_ = nullptr;
  uint64_t value_ = 0;
};

}  // namespace openreg::distributed
