// SPDX-License-Identifier: BSD-3-Clause
#include "channel.h"

#include <thread>
#include <utility>

namespace openreg::distributed {

Channel::Channel(Begin begin) {
  std::thread([state = state_, begin = std::move(begin)] {
    orThreadSetProgress(1);
    for (;;) {
      std::shared_ptr<Operation> operation;
      {
        std::unique_lock<std::mutex> lock(state->mutex);
        state->changed.wait(lock, [&] { return !state->queue.empty() || state->closed; });
        if (state->queue.empty()) {
          return;
        }
        operation = std::move(state->queue.front());
        state->queue.pop_front();
      }
      begin(operation);
    }
  }).detach();
}

Channel::~Channel() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
  }
  state_->changed.notify_all();
}

void Channel::push(std::shared_ptr<Operation> operation) {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->queue.push_back(std::move(operation));
  }
  state_->changed.notify_one();
}

}  // namespace openreg::distributed
