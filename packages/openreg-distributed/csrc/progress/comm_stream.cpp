// SPDX-License-Identifier: BSD-3-Clause
#include "progress/comm_stream.h"

#include <stdexcept>
#include <utility>

namespace openreg::distributed {

CommStream::CommStream(orStream_t stream) : stream_(stream) {
  if (orSemaphoreCreate(&semaphore_, 0) != orSuccess) {
    throw std::runtime_error(orGetLastErrorMessage());
  }
}

CommStream::~CommStream() {
  // Fails if the stream still waits for the semaphore, which then exists until the process ends.
  orSemaphoreDestroy(semaphore_);
}

orError_t CommStream::enqueue_semaphore_wait(std::unique_ptr<StreamWait>& stream_wait) {
  orEvent_t ready = nullptr;
  orError_t status = orEventCreateWithFlags(&ready, orEventDisableTiming);
  if (status != orSuccess) {
    return status;
  }
  auto retained = std::make_unique<StreamWait>(ready, semaphore_, value_ + 1);
  status = orEventRecord(ready, stream_);
  if (status == orSuccess) {
    status = orStreamWaitSemaphore(stream_, semaphore_, value_ + 1);
  }
  if (status == orSuccess) {
    ++value_;
    stream_wait = std::move(retained);
  }
  return status;
}

}  // namespace openreg::distributed
