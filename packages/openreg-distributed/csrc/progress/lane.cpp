// SPDX-License-Identifier: BSD-3-Clause
#include "lane.h"

#include <stdexcept>

namespace openreg::distributed {

namespace {

void check(orError_t status) {
  if (status != orSuccess) {
    throw std::runtime_error(orGetLastErrorMessage());
  }
}

}  // namespace

Lane::Lane(orStream_t stream) : stream_(stream) {
  check(orSemaphoreCreate(&semaphore_, 0));
}

Lane::~Lane() {
  // Refused while the stream still waits for it, on a device that was not waited for: then it stays with the process.
  orSemaphoreDestroy(semaphore_);
}

std::unique_ptr<Ticket> Lane::hold() {
  orEvent_t ready = nullptr;
  check(orEventCreateWithFlags(&ready, orEventDisableTiming));
  auto ticket = std::make_unique<Ticket>(ready, semaphore_, value_ + 1);
  check(orEventRecord(ready, stream_));
  check(orStreamWaitSemaphore(stream_, semaphore_, value_ + 1));
  ++value_;
  return ticket;
}

}  // namespace openreg::distributed
