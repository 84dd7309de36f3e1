// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: an engine is a block of the device with a doorbell register, and its counters are registers, too.
#include "engine/engine.h"

#include <chrono>
#include <cstring>

#include "base/steady_time.h"

namespace openreg::driver {

void Engine::stop() {
  stopped_ = true;
  has_work_.store(true, std::memory_order_relaxed);
  work_.notify_all();
}

void Engine::spin(Lock& lock) {
  spin_limit_.poll(lock, [this] { return has_work_.load(std::memory_order_relaxed); });
}

void Engine::sleep(Lock& lock, uint64_t longest) {
  sleeping_ = true;
  const auto is_needed = [this] { return has_work_.load(std::memory_order_relaxed) || stopped_; };
  if (longest != 0) {
    work_.wait_for(lock, std::chrono::nanoseconds(longest), is_needed);
  } else {
    work_.wait(lock, is_needed);
  }
  sleeping_ = false;
}

uint64_t Engine::begin(const Stream& stream) {
  running_ = &stream;
  running_device_ = stream.device;
  running_since_ = now();
  return running_since_;
}

// Reads the clock while it holds the scheduler's mutex, so that reported busy times never decrease: an earlier query
// has counted the task up to an earlier time.
uint64_t Engine::end(uint64_t& time) {
  time = now();
  running_ = nullptr;
  running_device_ = nullptr;
  ++tasks_;
  const uint64_t nanoseconds = time - running_since_;
  busy_nanoseconds_ += nanoseconds;
  return nanoseconds;
}

orEngineStats Engine::stats() const {
  orEngineStats stats{};
  std::strncpy(stats.name, name(), sizeof(stats.name) - 1);
  stats.tasks = tasks_;
  stats.busy_nanoseconds = busy_nanoseconds_;
  if (running_ != nullptr) {
    stats.busy_nanoseconds += now() - running_since_;
  }
  return stats;
}

}  // namespace openreg::driver
