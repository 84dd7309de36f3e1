// SPDX-License-Identifier: BSD-3-Clause
// The device's clock and that of PyTorch's profiles: nanoseconds of the steady clock, and since 1970.
#pragma once

#include <cstdint>

namespace openreg::profiler {

// Nanoseconds of the clock of the device's events, as long as no seed makes that clock virtual.
uint64_t steady_now() noexcept;

// One moment on both clocks, known to the time that reading one of them takes.
struct Moment {
  uint64_t steady;
  int64_t unix;
};
Moment both_clocks() noexcept;

// Converts between two moments, as if both clocks ran evenly there.
class UnixTime {
 public:
  UnixTime(Moment begin, Moment end) : begin_(begin), end_(end) {}
  int64_t operator()(uint64_t steady) const noexcept;

 private:
  Moment begin_;
  Moment end_;
};

}  // namespace openreg::profiler
