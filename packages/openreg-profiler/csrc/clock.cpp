// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the device has its own counter; the driver reads that counter and the host's clock together at intervals.
#include "clock.h"

#include <chrono>
#include <limits>

namespace openreg::profiler {

namespace {

template <class Clock>
int64_t nanoseconds() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

uint64_t steady_now() noexcept {
  return static_cast<uint64_t>(nanoseconds<std::chrono::steady_clock>());
}

ClockSample sample_clocks() noexcept {
  // Uses the fastest of many samples, because an interruption between the reads of the clocks makes a sample
  // inaccurate.
  ClockSample best{};
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = steady_now();
    const int64_t unix = nanoseconds<std::chrono::system_clock>();
    const uint64_t took = steady_now() - before;
    if (took < least) {
      least = took;
      best = {before + took / 2, unix};
    }
  }
  return best;
}

int64_t ClockConverter::operator()(uint64_t steady) const noexcept {
  const auto since = static_cast<int64_t>(steady - begin_.steady);
  const auto span = static_cast<double>(end_.steady - begin_.steady);
  if (span <= 0) {
    return begin_.unix + since;
  }
  // The adjustment of the system clock between the samples. The terms are added as integers, because a double cannot
  // represent the sum to the nanosecond.
  const auto drift = static_cast<double>(end_.unix - begin_.unix) - span;
  return begin_.unix + since + static_cast<int64_t>(drift * (static_cast<double>(since) / span));
}

}  // namespace openreg::profiler
