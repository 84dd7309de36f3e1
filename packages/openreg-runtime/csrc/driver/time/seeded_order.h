// SPDX-License-Identifier: BSD-3-Clause
// The random choices and the clock of a seeded schedule (OPENREG_SCHEDULE_SEED).
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace openreg::driver {

// A source of the choices that a seeded schedule makes instead of time, and its clock. Equal seeds and equal sequences
// of calls yield equal results on every system. Times are in nanoseconds. Not thread-safe.
class SeededOrder {
 public:
  explicit SeededOrder(uint64_t seed) : engine_(seed) {}

  // Returns an index below `count` > 0. Results of std::uniform_int_distribution differ between standard libraries; the
  // bias of the remainder is far below what a test could detect.
  size_t choose(size_t count) { return static_cast<size_t>(engine_() % count); }
  // Draws the duration of a task, in nanoseconds.
  uint64_t task_duration() { return 1'000 + engine_() % 100'000; }

  uint64_t time() const { return time_; }
  void set_time(uint64_t time) { time_ = time; }

 private:
  std::mt19937_64 engine_;
  uint64_t time_ = 1'000'000'000;  // not 0, so that differences of early times stay positive
};

}  // namespace openreg::driver
