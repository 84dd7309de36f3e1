// SPDX-License-Identifier: BSD-3-Clause
// SeededOrder makes the random choices of a seeded schedule, and is its clock. In a seeded schedule the order of tasks
// follows from the number in OPENREG_SCHEDULE_SEED instead of the speed of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace openreg::driver {

// A random generator and a clock. Equal seeds and equal sequences of calls yield equal results on every system. Times
// are in nanoseconds. Not thread-safe.
class SeededOrder {
 public:
  explicit SeededOrder(uint64_t seed) : engine_(seed) {}

  // Returns a random index below `count`, which must not be 0. Uses the remainder, because results of
  // std::uniform_int_distribution differ between standard libraries. The bias of the remainder is far below what a test
  // could detect.
  size_t choose(size_t count) { return static_cast<size_t>(engine_() % count); }
  // Returns a random duration for a task, from 1 to 101 microseconds, in nanoseconds.
  uint64_t task_duration() { return 1'000 + engine_() % 100'000; }

  // Returns the time of the clock, which advances only by set_time().
  uint64_t time() const { return time_; }
  void set_time(uint64_t time) { time_ = time; }

 private:
  std::mt19937_64 engine_;
  uint64_t time_ = 1'000'000'000;  // not 0, so that differences of early times stay positive
};

}  // namespace openreg::driver
