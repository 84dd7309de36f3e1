// SPDX-License-Identifier: BSD-3-Clause
#include "comm_stream.h"

#include <stdexcept>
#include <utility>

namespace openreg::distributed {

Lane::Lane(orStream_t stream) : stream_(stream) {
  if (orSemaphoreCreate(&semaphore_, 0) != orSuccess) {
    throw std::runtime_error(orGetLastErrorMessage());
  }
}

Lane::~Lane() {
  // Refused while the stream still waits for it, on a device that was not waited for: then it stays with the process.
  orSemaphoreDestroy(semaphore_);
}

orError_t Lane::hold(std::unique_ptr<Ticket>& ticket) {
  orEvent_t ready = nullptr;
  orError_t status = orEventCreateWithFlags(&ready, orEventDisableTiming);
  if (status != orSuccess) {
    return status;
  }
  auto held = std::make_unique<Ticket>(ready, semaphore_, value_ + 1);
  status = orEventRecord(ready, stream_);
  if (status == orSuccess) {
    status = orStreamWaitSemaphore(stream_, semaphore_, value_ + 1);
  }
  if (status == orSuccess) {
    ++value_;
    ticket = std::move(held);
  }
  return status;
}

}  // namespace openreg::distributed
