// SPDX-License-Identifier: BSD-3-Clause
#include "progress/wait_thread_pool.h"

#include <exception>
#include <utility>

#include "openreg.h"
#include "progress/threads.h"

namespace openreg::distributed {

WaitThreadPool::~WaitThreadPool() {
  close();
}

void WaitThreadPool::close() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
  }
  state_->changed.notify_all();
}

bool WaitThreadPool::run(std::function<void()>& wait) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->idle <= state_->queue.size()) {
    try {
      start_thread();
    } catch (const std::exception&) {
      return false;  // Without `wait` in the queue, from which another thread would take it.
    }
  }
  state_->queue.push_back(std::move(wait));
  state_->changed.notify_one();
  return true;
}

void WaitThreadPool::start_thread() {
  Threads::instance().start([state = state_] {
    orThreadSetProgress(1);
    std::unique_lock<std::mutex> lock(state->mutex);
    for (;;) {
      ++state->idle;
      state->changed.wait(lock, [&] { return !state->queue.empty() || state->closed; });
      --state->idle;
      if (state->queue.empty()) {
        return;
      }
      auto next = std::move(state->queue.front());
      state->queue.pop_front();
      lock.unlock();
      next();
      next = nullptr;
      lock.lock();
    }
  });
}

}  // namespace openreg::distributed
