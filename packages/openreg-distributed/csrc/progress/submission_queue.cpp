// SPDX-License-Identifier: BSD-3-Clause
#include "progress/submission_queue.h"

#include <utility>

#include "progress/threads.h"

namespace openreg::distributed {

SubmissionQueue::SubmissionQueue(Consumer consume) {
  Threads::instance().start([state = state_, consume = std::move(consume)] {
    orThreadSetProgress(1);
    Batch batch;
    for (;;) {
      batch.clear();
      {
        std::unique_lock<std::mutex> lock(state->mutex);
        state->changed.wait(lock, [&] { return !state->submitted.empty() || state->closed; });
        batch.swap(state->submitted);
      }
      if (batch.empty()) {
        return;
      }
      consume(batch);
    }
  });
}

SubmissionQueue::~SubmissionQueue() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
  }
  state_->changed.notify_all();
}

void SubmissionQueue::push(std::shared_ptr<Operation> operation) {
  bool was_empty;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    was_empty = state_->submitted.empty();
    state_->submitted.push_back(std::move(operation));
  }
  if (was_empty) {
    state_->changed.notify_one();
  }
}

}  // namespace openreg::distributed
