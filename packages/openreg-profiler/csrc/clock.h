// SPDX-License-Identifier: BSD-3-Clause
// Converts times from the device's clock to that of PyTorch's profiles: from nanoseconds of the steady clock to
// nanoseconds of the system clock since 1970.
#pragma once

#include <cstdint>

namespace openreg::profiler {

// Returns the time in nanoseconds of the steady clock. Events of the device use that clock, except in simulated time
// (orSubscribeTime). Thread-safe.
uint64_t steady_now() noexcept;

// The times of both clocks at one moment, in nanoseconds. The accuracy is the time that one read of a clock takes.
struct ClockSample {
  uint64_t steady;
  int64_t unix;
};
// Returns the current time on both clocks. Thread-safe.
ClockSample sample_clocks() noexcept;

// A linear conversion from the steady clock to nanoseconds since 1970, through two samples. It assumes that both clocks
// run evenly between them.
class ClockConverter {
 public:
  ClockConverter(ClockSample begin, ClockSample end) : begin_(begin), end_(end) {}
  int64_t operator()(uint64_t steady) const noexcept;

 private:
  ClockSample begin_;
  ClockSample end_;
};

}  // namespace openreg::profiler
