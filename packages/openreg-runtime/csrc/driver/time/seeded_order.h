// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace openreg::driver {

// The choices that replace time when the interleaving is seeded (OPENREG_SCHEDULE_SEED), and the clock that goes with
// them. The same seed gives the same answers to the same questions, on every system. Not thread-safe.
class SeededOrder {
 public:
  explicit SeededOrder(uint64_t seed) : engine_(seed) {}

  // One of `count` > 0 candidates. std::uniform_int_distribution differs between standard libraries; the remainder's
  // bias is far below what a test could see.
  size_t choose(size_t count) { return static_cast<size_t>(engine_() % count); }
  // How long a task takes, in nanoseconds.
  uint64_t task_duration() { return 1'000 + engine_() % 100'000; }

  uint64_t time() const { return time_; }
  void set_time(uint64_t time) { time_ = time; }

 private:
  std::mt19937_64 engine_;
  uint64_t time_ = 1'000'000'000;  // not 0, so that differences of early times stay positive
};

}  // namespace openreg::driver
