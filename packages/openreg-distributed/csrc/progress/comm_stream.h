// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "openreg.h"
#include "progress/operation.h"

namespace openreg::distributed {

// A communication stream: a stream of the device that executes the tasks of collectives and messages, and waits for a
// timeline semaphore (a counter, orSemaphoreCreate()) while the transport (the c10d backend that moves bytes between
// ranks, Gloo) moves their data. The n-th operation waits for the value n, so an operation also waits for those before
// it on its stream. The choice of the stream for an operation must follow from the program alone, and not from which
// operations are complete, because that depends on the network. Not thread-safe.
class CommStream {
 public:
  // Does not take ownership of the stream. Throws std::runtime_error with the driver's message.
  explicit CommStream(orStream_t stream);
  CommStream(const CommStream&) = delete;
  CommStream& operator=(const CommStream&) = delete;
  ~CommStream();

  // Enqueues the semaphore wait of the next operation, and sets `stream_wait` to it. The wait is ready when the tasks
  // before it are complete; the tasks after it run when it is signaled. Returns the driver's error code, such as that
  // of a failed device, and then does not set `stream_wait`.
  orError_t enqueue_semaphore_wait(std::unique_ptr<StreamWait>& stream_wait);

 private:
  orStream_t stream_;
  orSemaphore_t semaphore_ = nullptr;
  uint64_t value_ = 0;  // The value for which the newest operation waits.
};

}  // namespace openreg::distributed
