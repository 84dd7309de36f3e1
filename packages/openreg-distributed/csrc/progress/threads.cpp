// SPDX-License-Identifier: BSD-3-Clause
#include "progress/threads.h"

#include <iterator>
#include <utility>

namespace openreg::distributed {

Threads& Threads::instance() {
  static auto* const threads = new Threads;
  return *threads;
}

void Threads::start(std::function<void()> body) {
  const std::lock_guard<std::mutex> lock(mutex_);
  join_ended();
  const auto place = threads_.emplace(threads_.end());
  try {
    place->handle = std::thread([this, place, body = std::move(body)]() mutable {
      body();
      body = nullptr;  // Releases what it owns before the thread counts as ended.
      const std::lock_guard<std::mutex> end(mutex_);
      place->has_ended = true;
      ended_.notify_all();
    });
  } catch (...) {
    threads_.erase(place);
    throw;
  }
}

bool Threads::join(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return ended_.wait_for(lock, limit, [this] {
    join_ended();
    return threads_.empty();
  });
}

// A thread that has ended does nothing after it has unlocked the mutex, so joining it does not block.
void Threads::join_ended() {
  for (auto place = threads_.begin(); place != threads_.end();) {
    if (place->has_ended) {
      place->handle.join();
      place = threads_.erase(place);
    } else {
      ++place;
    }
  }
}

}  // namespace openreg::distributed
