// SPDX-License-Identifier: BSD-3-Clause
#include "submission_queue.h"

#include <utility>

#include "threads.h"

namespace openreg::distributed {

Channel::Channel(TakeUp take_up) {
  Threads::instance().start([state = state_, take_up = std::move(take_up)] {
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
      take_up(batch);
    }
  });
}

Channel::~Channel() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
  }
  state_->changed.notify_all();
}

void Channel::push(std::shared_ptr<Operation> operation) {
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
