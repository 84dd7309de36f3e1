// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "openreg.h"
#include "progress/operation.h"

namespace openreg::distributed {

// A communication stream: it runs the device part of operations, and waits for a semaphore while the transport moves
// their data. The n-th operation waits for the value n, so an operation also waits for those before it on its stream.
// The program alone must determine which stream an operation gets, because what is already complete depends on the
// network. Not thread-safe.
class CommStream {
 public:
  // Does not take ownership of the stream. Throws std::runtime_error with the driver's message.
  explicit CommStream(orStream_t stream);
  CommStream(const CommStream&) = delete;
  CommStream& operator=(const CommStream&) = delete;
  ~CommStream();

  // Enqueues the wait of the next operation. `stream_wait` is ready when everything enqueued so far is complete, and
  // what is enqueued later runs once it is signaled. If the device has failed, returns the driver's error code and
  // leaves `stream_wait` null.
  orError_t enqueue_semaphore_wait(std::unique_ptr<StreamWait>& stream_wait);

 private:
  orStream_t stream_;
  orSemaphore_t semaphore_ = nullptr;
  uint64_t value_ = 0;
};

}  // namespace openreg::distributed
