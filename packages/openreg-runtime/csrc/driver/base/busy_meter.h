// SPDX-License-Identifier: BSD-3-Clause
// BusyMeter measures how long engines executed tasks of one device during the past second. orDeviceGetUtilization()
// returns the result as a percentage.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace openreg::driver {

// The busy time of the past second, summed over intervals that may overlap. The meter keeps one sum per slice of 1/32
// second, so that an interval costs at most 33 additions. All times are in nanoseconds of the steady clock. Not
// thread-safe.
class BusyMeter {
 public:
  // Adds the busy interval [begin, end). The caller adds intervals in the order in which they end, because a slice of a
  // late interval would replace a newer slice.
  void add(uint64_t begin, uint64_t end) {
    begin = std::max(begin, end > kWindow ? end - kWindow : 0);  // busy() never reads what is older
    while (begin < end) {
      const uint64_t slice = begin / kSlice;
      const uint64_t until = std::min(end, (slice + 1) * kSlice);
      TimeSlice& slot = slots_[slice % kSlots];
      if (slot.number != slice) {
        slot = {slice, 0};
      }
      slot.busy += until - begin;
      begin = until;
    }
  }

  // Returns the busy time in (time - kWindow, time], to the precision of one slice and at most kWindow. No interval may
  // end after `time`.
  uint64_t busy(uint64_t time) const {
    const uint64_t newest = time / kSlice;
    uint64_t sum = 0;
    for (const TimeSlice& slot : slots_) {
      if (slot.number <= newest && newest - slot.number < kSlots - 1) {
        sum += slot.busy;
      }
    }
    return std::min(sum, kWindow);
  }

  static constexpr uint64_t kWindow = 1'000'000'000;  // one second

 private:
  static constexpr size_t kSlots = 33;  // 32 slices make a window; one that begins within a slice overlaps 33
  static constexpr uint64_t kSlice = kWindow / (kSlots - 1);
  struct TimeSlice {
    uint64_t number = 0;  // the time at which it begins, divided by kSlice
    uint64_t busy = 0;    // the busy time in it
  };
  std::array<TimeSlice, kSlots> slots_{};  // slice n is in slot n % kSlots
};

}  // namespace openreg::driver
